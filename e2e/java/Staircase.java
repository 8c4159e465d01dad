import com.rabbitmq.client.Channel;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Instead of one long delay, short ones that double: at each step the worker asks whether the order
 * is paid, stops if so, and otherwise sends itself the next check, until the deadline is reached.
 * When it was created and how long the step was travel in the message.
 */
final class Staircase implements Scheme {
    private static final long DEADLINE = 1700;
    private static final int FIRST = 200;

    private Channel channel;
    private String exchange;

    @Override
    public void play(Stage stage) throws Exception {
        exchange = stage.exchange("order.delay.exchange", "x-delayed-message", Map.of("x-delayed-type", "direct"));
        String queue = stage.queue("order.delay.queue");
        channel = stage.channel();
        channel.queueBind(queue, exchange, "order.delay.key");

        Set<String> paid = new HashSet<>();
        Inbox inbox = stage.consume(queue);
        send("unpaid", System.currentTimeMillis(), FIRST);
        send("paid", System.currentTimeMillis(), FIRST);

        List<Long> steps = new ArrayList<>();
        boolean cancelled = false;
        boolean stopped = false;
        while (!cancelled || !stopped) {
            Inbox.Letter letter = inbox.next();
            String order = letter.body();
            long created = (Long) letter.headers().get("created-at");
            long sent = (Long) letter.headers().get("sent-at");
            int step = (Integer) letter.headers().get("step");
            stage.onTime(order + " after a step of " + step + " ms", sent + step, letter.arrived());
            if (paid.contains(order)) {
                stage.equal(order, "paid", "order that stopped");
                stopped = true;
            } else if (letter.arrived() - created >= DEADLINE) {
                stage.equal(order, "unpaid", "order that was cancelled");
                stage.onTime("cancelled", created + DEADLINE, letter.arrived());
                cancelled = true;
            } else {
                long left = created + DEADLINE - System.currentTimeMillis();
                send(order, created, (int) Math.max(0, Math.min(2L * step, left)));
                if (order.equals("paid")) {
                    paid.add(order); // the customer pays between the first check and the second
                }
            }
            if (order.equals("unpaid")) {
                steps.add((long) step);
            }
            inbox.channel().basicAck(letter.tag(), false);
        }
        System.out.println("steps " + steps);
        stage.check(steps.size() >= 3, "too few steps: " + steps);
        for (int i = 1; i < steps.size() - 1; i++) {
            stage.equal(steps.get(i), 2 * steps.get(i - 1), "step " + i + " of " + steps);
        }
        stage.check(inbox.within(500) == null, "a check came after the end");
    }

    private void send(String order, long created, int step) throws Exception {
        channel.basicPublish(
                exchange,
                "order.delay.key",
                new Post()
                        .header("x-delay", step)
                        .header("step", step)
                        .header("created-at", created)
                        .header("sent-at", System.currentTimeMillis())
                        .props(),
                Post.bytes(order));
    }
}
