/** One way of using the broker, as a reader of an article about delayed messages would write it. */
interface Scheme {
    /** Declares, publishes, consumes and checks; throws at the first broken expectation. */
    void play(Stage stage) throws Exception;
}
