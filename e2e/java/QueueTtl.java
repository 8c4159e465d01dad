import com.rabbitmq.client.Channel;
import java.util.HashMap;
import java.util.Map;

/**
 * A delay that belongs to the queue: x-message-ttl with its own dead-letter routing key, and a
 * message's own expiration that counts only where it is lower. Without a dead-letter routing key
 * the message keeps its own.
 */
final class QueueTtl implements Scheme {
    private static final int TTL = 1000;

    @Override
    public void play(Stage stage) throws Exception {
        String delayExchange = stage.exchange("delay.exchange", "direct");
        String deadLetterExchange = stage.exchange("dead.letter.exchange", "direct");
        Map<String, Object> arguments = new HashMap<>();
        arguments.put("x-message-ttl", TTL);
        arguments.put("x-dead-letter-exchange", deadLetterExchange);
        String keepsKey = stage.queue("delay.keeps.key", arguments);
        arguments.put("x-dead-letter-routing-key", "dead.letter.routing.key");
        String delayQueue = stage.queue("delay.queue", arguments);
        String actualQueue = stage.queue("actual.queue");

        Channel channel = stage.channel();
        channel.queueBind(delayQueue, delayExchange, "delay.routing.key");
        channel.queueBind(keepsKey, delayExchange, "own.key");
        channel.queueBind(actualQueue, deadLetterExchange, "dead.letter.routing.key");
        channel.queueBind(actualQueue, deadLetterExchange, "own.key");

        Map<String, Long> due = new HashMap<>();
        long now = System.currentTimeMillis();
        publish(channel, delayExchange, "delay.routing.key", "lower", new Post().expiration(300));
        due.put("lower", now + 300);
        publish(channel, delayExchange, "delay.routing.key", "none", new Post());
        due.put("none", now + TTL);
        publish(channel, delayExchange, "delay.routing.key", "higher", new Post().expiration(60_000));
        due.put("higher", now + TTL);
        publish(channel, delayExchange, "own.key", "keeps", new Post());
        due.put("keeps", now + TTL);

        Inbox inbox = stage.consume(actualQueue);
        for (int i = 0; i < due.size(); i++) {
            Inbox.Letter letter = inbox.take();
            String body = letter.body();
            stage.onTime(body, due.get(body), letter.arrived());
            boolean keeps = body.equals("keeps");
            stage.equal(letter.key(), keeps ? "own.key" : "dead.letter.routing.key", "routing key of " + body);
            Death.of(letter).get(0).check(stage, keeps ? keepsKey : delayQueue, "expired", 1,
                    delayExchange, keeps ? "own.key" : "delay.routing.key");
            Object original = switch (body) {
                case "lower" -> "300";
                case "higher" -> "60000";
                default -> null;
            };
            stage.equal(Death.of(letter).get(0).get("original-expiration"), original, "original expiration of " + body);
        }
        stage.equal(stage.ready(delayQueue), 0, "messages left waiting");

        // The same arguments again change nothing; another TTL needs another queue.
        channel.queueDeclare(delayQueue, true, false, false, arguments);
        arguments.put("x-message-ttl", 2 * TTL);
        stage.refused(406, "declare with another TTL",
                ch -> ch.queueDeclare(delayQueue, true, false, false, arguments));
    }

    private static void publish(Channel channel, String exchange, String key, String body, Post post) throws Exception {
        channel.basicPublish(exchange, key, post.props(), Post.bytes(body));
    }
}
