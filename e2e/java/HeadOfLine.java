import com.rabbitmq.client.Channel;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * One waiting queue, a long delay in front, short ones behind it. RabbitMQ lets messages expire at
 * the head of a queue only, so there the short ones come with the long one; here each comes when
 * its own time ends.
 */
final class HeadOfLine implements Scheme {
    private static final long LONG = 5000;

    @Override
    public void play(Stage stage) throws Exception {
        String workQueue = stage.queue("work");
        String waitQueue = stage.queue("wait", Map.of(
                "x-dead-letter-exchange", "",
                "x-dead-letter-routing-key", workQueue));
        Channel channel = stage.channel();
        Map<String, Long> due = new HashMap<>();
        for (long delay : List.of(LONG, 900L, 300L, 600L)) {
            due.put(delay + " ms", System.currentTimeMillis() + delay);
            channel.basicPublish("", waitQueue, new Post().expiration(delay).props(), Post.bytes(delay + " ms"));
        }
        Inbox inbox = stage.consume(workQueue);
        for (String want : List.of("300 ms", "600 ms", "900 ms", LONG + " ms")) {
            Inbox.Letter letter = inbox.take();
            stage.equal(letter.body(), want, "order of expiry");
            stage.onTime(want, due.get(want), letter.arrived());
            stage.check(want.startsWith("5") || letter.arrived() < due.get(LONG + " ms"), want + " waited for the head");
        }
    }
}
