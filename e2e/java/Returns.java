import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Return;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.ArrayList;
import java.util.UUID;

/**
 * Mandatory messages that reach no queue come back, and they come back before their confirm. The
 * correlation header is what a Spring template adds to find its own message again.
 */
final class Returns implements Scheme {
    @Override
    public void play(Stage stage) throws Exception {
        String exchange = stage.exchange("orders", "direct");
        String queue = stage.queue("work");
        Channel channel = stage.channel();
        channel.queueBind(queue, exchange, "known");
        channel.confirmSelect();
        List<String> events = Collections.synchronizedList(new ArrayList<>());
        List<Return> returns = Collections.synchronizedList(new ArrayList<>());
        channel.addReturnListener(r -> {
            events.add("return");
            returns.add(r);
        });
        channel.addConfirmListener((tag, multiple) -> events.add("ack"), (tag, multiple) -> events.add("nack"));

        String correlation = UUID.randomUUID().toString();
        AMQP.BasicProperties props =
                new Post().header("spring_returned_message_correlation", correlation).messageId("m-1").props();
        channel.basicPublish(exchange, "unknown", true, props, Post.bytes("comes back"));
        stage.check(channel.waitForConfirms(5_000), "confirm of a returned message");
        stage.equal(events, List.of("return", "ack"), "events");
        Return back = returns.get(0);
        stage.equal(back.getReplyCode(), 312, "reply code");
        stage.equal(back.getReplyText(), "NO_ROUTE", "reply text");
        stage.equal(back.getExchange(), exchange, "exchange");
        stage.equal(back.getRoutingKey(), "unknown", "routing key");
        stage.equal(new String(back.getBody(), java.nio.charset.StandardCharsets.UTF_8), "comes back", "body");
        stage.equal(back.getProperties().getMessageId(), "m-1", "message id");
        stage.equal(back.getProperties().getHeaders(), Map.of("spring_returned_message_correlation", correlation), "headers");

        events.clear();
        channel.basicPublish(exchange, "known", true, props, Post.bytes("arrives"));
        stage.check(channel.waitForConfirms(5_000), "confirm of a routed message");
        stage.equal(events, List.of("ack"), "events of a routed message");
        events.clear();
        channel.basicPublish(exchange, "unknown", false, props, Post.bytes("vanishes"));
        stage.check(channel.waitForConfirms(5_000), "confirm of an unroutable message");
        stage.equal(events, List.of("ack"), "events of an unroutable message that is not mandatory");
        stage.equal(stage.consume(queue).take().body(), "arrives", "message in the queue");

        stage.refused(404, "publish to an unknown exchange",
                ch -> ch.basicPublish(stage.name("nowhere"), "", props, Post.bytes("lost")));
    }
}
