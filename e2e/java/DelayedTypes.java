import com.rabbitmq.client.Channel;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/** Every Java type in which a delay can be sent, up to one that lasts longer than 32 bits of ms. */
final class DelayedTypes implements Scheme {
    @Override
    public void play(Stage stage) throws Exception {
        String exchange = stage.exchange("delay", "x-delayed-message", Map.of("x-delayed-type", "topic"));
        String queue = stage.queue("work");
        Channel channel = stage.channel();
        channel.queueBind(queue, exchange, "delay.#");
        channel.confirmSelect();

        Map<String, Object> delays = new LinkedHashMap<>();
        delays.put("int", 1200);
        delays.put("long", 1000L);
        delays.put("double", 800.9);
        delays.put("float", 600.5f);
        delays.put("short", (short) 400);
        delays.put("string", "200");
        delays.put("byte", (byte) 100);
        Map<String, Long> due = new HashMap<>();
        // 49.7 days and half a second: a broker that keeps 32 bits would release it at once.
        publish(channel, exchange, "century", (1L << 32) + 500);
        for (Map.Entry<String, Object> e : delays.entrySet()) {
            due.put(e.getKey(), System.currentTimeMillis() + Double.valueOf(e.getValue().toString()).longValue());
            publish(channel, exchange, e.getKey(), e.getValue());
        }
        channel.waitForConfirmsOrDie(10_000);

        Inbox inbox = stage.consume(queue);
        for (int i = 0; i < delays.size(); i++) {
            Inbox.Letter letter = inbox.take();
            stage.onTime(letter.body(), due.get(letter.body()), letter.arrived());
            long millis = Double.valueOf(delays.get(letter.body()).toString()).longValue();
            stage.equal(letter.headers().get("x-delay"), -millis, "x-delay sent as " + letter.body());
            stage.check(letter.headers().get("x-delay") instanceof Long, "x-delay after release is no long");
        }
        stage.check(inbox.within(1000) == null, "a delay beyond 32 bits ended at once");
    }

    private static void publish(Channel channel, String exchange, String type, Object delay) throws Exception {
        channel.basicPublish(
                exchange, "delay." + type + ".x", new Post().header("x-delay", delay).props(), Post.bytes(type));
    }
}
