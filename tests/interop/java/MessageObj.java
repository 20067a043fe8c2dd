/** What the converter of {@link TemplateApp} turns into a map message and back. */
public final class MessageObj {
    private final String id;
    private final String info;

    public MessageObj(String id, String info) {
        this.id = id;
        this.info = info;
    }

    public String getId() {
        return id;
    }

    public String getInfo() {
        return info;
    }

    @Override
    public String toString() {
        return id + " " + info;
    }
}
