import java.util.Map;
import java.util.TreeMap;

/**
 * Plays one scheme against the broker at DUEPOST_E2E_URL and says by its exit code whether the
 * broker kept its word.
 *
 * <pre>java Main SCHEME</pre>
 *
 * Without a scheme it lists them, one a line.
 */
final class Main {
    private static final Map<String, Scheme> SCHEMES = new TreeMap<>(Map.ofEntries(
            Map.entry("order-close", new OrderClose()),
            Map.entry("queue-ttl", new QueueTtl()),
            Map.entry("queue-expires", new QueueExpires()),
            Map.entry("tiers", new Tiers()),
            Map.entry("head-of-line", new HeadOfLine()),
            Map.entry("delayed-exchange", new DelayedExchange()),
            Map.entry("delayed-types", new DelayedTypes()),
            Map.entry("delayed-bindings", new DelayedBindings()),
            Map.entry("delayed-refusals", new DelayedRefusals()),
            Map.entry("staircase", new Staircase()),
            Map.entry("manual-ack", new ManualAck()),
            Map.entry("rejects", new Rejects()),
            Map.entry("delayed-retry", new DelayedRetry()),
            Map.entry("confirms", new Confirms()),
            Map.entry("returns", new Returns()),
            Map.entry("routing", new Routing())));

    private Main() {}

    public static void main(String[] args) throws Exception {
        if (args.length == 0) {
            SCHEMES.keySet().forEach(System.out::println);
            return;
        }
        Scheme scheme = SCHEMES.get(args[0]);
        if (scheme == null) {
            System.err.println("no scheme named " + args[0]);
            System.exit(2);
        }
        int code = 0;
        try (Stage stage = Stage.open(args[0])) {
            scheme.play(stage);
            System.out.println("played " + args[0] + ": " + stage.checks() + " checks");
        } catch (Throwable e) {
            e.printStackTrace();
            code = 1;
        }
        // A connection left half open must not keep the process alive.
        System.exit(code);
    }
}
