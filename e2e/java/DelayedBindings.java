import com.rabbitmq.client.Channel;
import java.util.Map;

/**
 * A delayed message is routed when it is due, with the bindings that stand then, and by the rules
 * of the exchange's inner type. Deleting the exchange drops what waits in it.
 */
final class DelayedBindings implements Scheme {
    private static final int DELAY = 1500;

    @Override
    public void play(Stage stage) throws Exception {
        String exchange = stage.exchange("topic", "x-delayed-message", Map.of("x-delayed-type", "topic"));
        String fanout = stage.exchange("fanout", "x-delayed-message", Map.of("x-delayed-type", "fanout"));
        String early = stage.queue("early");
        String late = stage.queue("late");
        String every = stage.queue("every");
        Channel channel = stage.channel();
        channel.queueBind(early, exchange, "order.*.close");
        channel.queueBind(every, fanout, "");
        channel.confirmSelect();

        long due = System.currentTimeMillis() + DELAY;
        Post post = new Post().header("x-delay", DELAY);
        channel.basicPublish(exchange, "order.7.close", post.props(), Post.bytes("topic"));
        channel.basicPublish(exchange, "order.close", post.props(), Post.bytes("matches nothing"));
        channel.basicPublish(fanout, "whatever", post.props(), Post.bytes("fanout"));
        channel.waitForConfirmsOrDie(10_000);
        channel.queueUnbind(early, exchange, "order.*.close");
        channel.queueBind(late, exchange, "order.#.close.#");
        channel.queueUnbind(late, exchange, "order.#.close.#");
        channel.queueBind(late, exchange, "*.7.close");
        channel.queueBind(late, fanout, "");

        Inbox lateInbox = stage.consume(late);
        for (String want : new String[] {"topic", "fanout"}) {
            Inbox.Letter letter = lateInbox.take();
            stage.equal(letter.body(), want, "message in the queue that was bound later");
            stage.onTime(want, due, letter.arrived());
        }
        Inbox.Letter letter = stage.consume(every).take();
        stage.equal(letter.body(), "fanout", "message in the other queue of the fanout");
        stage.check(stage.consume(early).within(300) == null, "a removed binding was used");

        String doomed = stage.exchange("doomed", "x-delayed-message", Map.of("x-delayed-type", "fanout"));
        channel.basicPublish(doomed, "", new Post().header("x-delay", 300).props(), Post.bytes("ghost"));
        channel.waitForConfirmsOrDie(10_000);
        channel.exchangeDelete(doomed);
        stage.exchange("doomed", "x-delayed-message", Map.of("x-delayed-type", "fanout"));
        channel.queueBind(late, doomed, "");
        stage.check(lateInbox.within(900) == null, "a deleted exchange's message came back");
    }
}
