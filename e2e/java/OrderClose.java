import com.rabbitmq.client.Channel;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An order that nobody pays is closed: each close command waits in a queue without consumers for as
 * long as its own expiration says, dies there, and reaches the worker through the dead-letter
 * exchange. The worker asks the order's state again, because some were paid meanwhile and a message
 * may come twice.
 */
final class OrderClose implements Scheme {
    private enum State { WAITING, PAID, CLOSED }

    @Override
    public void play(Stage stage) throws Exception {
        String waitExchange = stage.exchange("wait.ex", "direct");
        String closeExchange = stage.exchange("close.ex", "direct");
        String waitQueue = stage.queue("wait.q", Map.of(
                "x-dead-letter-exchange", closeExchange,
                "x-dead-letter-routing-key", "order.close"));
        String closeQueue = stage.queue("close.q");
        Channel channel = stage.channel();
        channel.queueBind(waitQueue, waitExchange, "order.wait");
        channel.queueBind(closeQueue, closeExchange, "order.close");
        channel.confirmSelect();

        Map<String, State> orders = new LinkedHashMap<>();
        Map<String, Long> due = new HashMap<>();
        for (long delay : List.of(300L, 500L, 700L, 900L, 1200L, 1500L)) {
            String number = "ORDER-" + delay;
            orders.put(number, State.WAITING);
            due.put(number, System.currentTimeMillis() + delay);
            channel.basicPublish(
                    waitExchange,
                    "order.wait",
                    new Post().expiration(delay).messageId(number).header("__TypeId__", "OrderCloseCommand").props(),
                    Post.bytes("{\"orderNo\":\"" + number + "\"}"));
        }
        channel.waitForConfirmsOrDie(10_000);
        orders.put("ORDER-500", State.PAID);
        orders.put("ORDER-1200", State.PAID);

        Inbox inbox = stage.consume(closeQueue);
        List<String> closed = new ArrayList<>();
        for (int i = 0; i < orders.size(); i++) {
            Inbox.Letter letter = inbox.take();
            String number = letter.props().getMessageId();
            stage.onTime(number, due.get(number), letter.arrived());
            checkLetter(stage, letter, number, waitQueue, waitExchange, closeExchange);
            if (orders.replace(number, State.WAITING, State.CLOSED)) {
                closed.add(number);
            }
        }
        stage.equal(closed, List.of("ORDER-300", "ORDER-700", "ORDER-900", "ORDER-1500"), "closed orders");
        stage.check(inbox.within(300) == null, "a close command came twice");
        stage.equal(stage.ready(waitQueue), 0, "messages left waiting");
        stage.equal(stage.ready(closeQueue), 0, "messages left to close");
    }

    private static void checkLetter(
            Stage stage, Inbox.Letter letter, String number, String waitQueue, String waitExchange, String closeExchange) {
        stage.equal(letter.body(), "{\"orderNo\":\"" + number + "\"}", "body");
        stage.equal(letter.key(), "order.close", "routing key");
        stage.equal(letter.delivery().getEnvelope().getExchange(), closeExchange, "exchange");
        stage.check(!letter.redelivered(), "first delivery is marked as redelivered");
        stage.equal(letter.props().getContentType(), "application/json", "content type");
        stage.equal(letter.props().getDeliveryMode(), 2, "delivery mode");
        stage.equal(letter.headers().get("__TypeId__"), "OrderCloseCommand", "type header");
        stage.equal(letter.props().getExpiration(), null, "expiration after dead-lettering");

        List<Death> deaths = Death.of(letter);
        stage.equal(deaths.size(), 1, "x-death entries");
        deaths.get(0).check(stage, waitQueue, "expired", 1, waitExchange, "order.wait");
        stage.equal(deaths.get(0).get("original-expiration"), number.substring("ORDER-".length()), "original expiration");
        stage.equal(letter.headers().get("x-first-death-reason"), "expired", "first death reason");
        stage.equal(letter.headers().get("x-first-death-queue"), waitQueue, "first death queue");
        stage.equal(letter.headers().get("x-first-death-exchange"), waitExchange, "first death exchange");
    }
}
