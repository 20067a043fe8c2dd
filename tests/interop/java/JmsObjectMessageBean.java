import java.io.Serializable;

/** What an object message carries. */
public final class JmsObjectMessageBean implements Serializable {
    private static final long serialVersionUID = 1;

    private final String userName;
    private final int age;
    private final boolean flag;

    public JmsObjectMessageBean(String userName, int age, boolean flag) {
        this.userName = userName;
        this.age = age;
        this.flag = flag;
    }

    public String getUserName() {
        return userName;
    }

    public int getAge() {
        return age;
    }

    public boolean isFlag() {
        return flag;
    }
}
