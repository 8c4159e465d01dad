import java.util.List;
import java.util.Map;

/** Reads the x-death header: what happened to a message before it got here, newest first. */
final class Death {
    private final Map<String, Object> entry;

    private Death(Map<String, Object> entry) {
        this.entry = entry;
    }

    @SuppressWarnings("unchecked")
    static List<Death> of(Inbox.Letter letter) {
        Object header = letter.headers().get("x-death");
        if (header == null) {
            return List.of();
        }
        return ((List<Object>) header).stream().map(e -> new Death((Map<String, Object>) e)).toList();
    }

    Object get(String key) {
        return entry.get(key);
    }

    /** Checks what every entry has: where the message died, why, how often, and by which key. */
    void check(Stage stage, String queue, String reason, long count, String exchange, String key) {
        stage.equal(get("queue"), queue, "x-death queue");
        stage.equal(get("reason"), reason, "x-death reason");
        stage.check(get("count") instanceof Long, "x-death count is no long: " + get("count"));
        stage.equal(get("count"), count, "x-death count");
        stage.equal(get("exchange"), exchange, "x-death exchange");
        stage.equal(get("routing-keys"), List.of(key), "x-death routing-keys");
        stage.check(get("time") instanceof java.util.Date, "x-death time is no timestamp: " + get("time"));
    }
}
