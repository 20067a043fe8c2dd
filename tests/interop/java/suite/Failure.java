package suite;

/** Something is not as it should be. */
final class Failure extends RuntimeException {
    private static final long serialVersionUID = 1;

    Failure(String message) {
        super(message);
    }

    Failure(String message, Throwable cause) {
        super(message, cause);
    }
}
