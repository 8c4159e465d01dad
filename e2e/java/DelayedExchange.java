import com.rabbitmq.client.Channel;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The exchange that keeps each message for as long as its x-delay header says. A long delay first
 * does not hold up the short ones; the consumer sees the delay negated, and no trace of a queue.
 */
final class DelayedExchange implements Scheme {
    @Override
    public void play(Stage stage) throws Exception {
        String exchange = stage.exchange("order.delay.ex", "x-delayed-message", Map.of("x-delayed-type", "direct"));
        String queue = stage.queue("order.close.q");
        Channel channel = stage.channel();
        channel.queueBind(queue, exchange, "order.close");
        channel.confirmSelect();
        AtomicInteger returned = new AtomicInteger();
        channel.addReturnListener(r -> returned.incrementAndGet());

        Map<String, Long> due = new HashMap<>();
        for (int delay : List.of(2500, 300, 1200, 600, 900, 301)) {
            String number = "ORDER-" + delay;
            due.put(number, System.currentTimeMillis() + delay);
            // Accepted is as good as routed: mandatory must not return what waits.
            channel.basicPublish(exchange, "order.close", true,
                    new Post().header("x-delay", delay).header("shop", "north").messageId(number).props(), Post.bytes(number));
        }
        channel.waitForConfirmsOrDie(10_000);
        stage.equal(stage.ready(queue), 0, "messages in the queue before they are due");

        Inbox inbox = stage.consume(queue);
        for (int delay : List.of(300, 301, 600, 900, 1200, 2500)) {
            Inbox.Letter letter = inbox.take();
            String number = "ORDER-" + delay;
            stage.equal(letter.body(), number, "order of release");
            stage.onTime(number, due.get(number), letter.arrived());
            Map<String, Object> headers = new HashMap<>(letter.headers());
            headers.remove("x-duepost-id"); // which a relay adds
            headers.replace("shop", letter.headers().get("shop").toString()); // a LongString until asked
            stage.same(headers, Map.of("x-delay", (long) -delay, "shop", "north"), "headers of " + number);
            stage.equal(letter.delivery().getEnvelope().getExchange(), exchange, "exchange");
            stage.equal(letter.key(), "order.close", "routing key");
            stage.equal(letter.props().getMessageId(), number, "message id");
            stage.equal(letter.props().getDeliveryMode(), 2, "delivery mode");
            stage.check(!letter.redelivered(), "first delivery is marked as redelivered");
        }
        stage.equal(returned.get(), 0, "returned messages");

        atOnce(stage, inbox, exchange, new Post(), "no header");
        atOnce(stage, inbox, exchange, new Post().header("x-delay", 0), "zero");
        atOnce(stage, inbox, exchange, new Post().header("x-delay", -5000), "negative");
    }

    private static void atOnce(Stage stage, Inbox inbox, String exchange, Post post, String body) throws Exception {
        long now = System.currentTimeMillis();
        stage.channel().basicPublish(exchange, "order.close", post.props(), Post.bytes(body));
        Inbox.Letter letter = inbox.take();
        stage.equal(letter.body(), body, "body");
        stage.onTime(body, now, letter.arrived());
        Object want = switch (body) {
            case "zero" -> 0;
            case "negative" -> -5000;
            default -> null;
        };
        stage.equal(letter.headers().get("x-delay"), want, "x-delay that asks for no delay");
    }
}
