import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a delayed exchange refuses, on the channel and with a reason, instead of guessing. */
final class DelayedRefusals implements Scheme {
    @Override
    public void play(Stage stage) throws Exception {
        String name = stage.name("refused");
        stage.refused(406, "no x-delayed-type",
                ch -> ch.exchangeDeclare(name, "x-delayed-message", true, false, Map.of()));
        stage.refused(406, "x-delayed-type that is no string",
                ch -> ch.exchangeDeclare(name, "x-delayed-message", true, false, Map.of("x-delayed-type", 7)));
        stage.refused(406, "delayed inside delayed", ch -> ch.exchangeDeclare(
                name, "x-delayed-message", true, false, Map.of("x-delayed-type", "x-delayed-message")));
        stage.refused(404, "an exchange whose declaration was refused", ch -> ch.exchangeDeclarePassive(name));

        String exchange = stage.exchange("delay", "x-delayed-message", Map.of("x-delayed-type", "direct"));
        stage.refused(406, "another inner type", ch -> ch.exchangeDeclare(
                exchange, "x-delayed-message", true, false, Map.of("x-delayed-type", "fanout")));

        String queue = stage.queue("work");
        stage.channel().queueBind(queue, exchange, "work");
        Map<String, Object> delays = new LinkedHashMap<>();
        delays.put("a word", "soon");
        delays.put("a boolean", true);
        delays.put("a date", new Date());
        delays.put("a list", List.of(1000));
        delays.put("a table", Map.of("ms", 1000));
        delays.put("not a number", Double.NaN);
        delays.put("more than 100 years", 101L * 366 * 24 * 3600 * 1000);
        for (Map.Entry<String, Object> e : delays.entrySet()) {
            AMQP.BasicProperties props = new Post().header("x-delay", e.getValue()).props();
            stage.refused(406, "x-delay of " + e.getKey(), (Channel ch) ->
                    ch.basicPublish(exchange, "work", props, Post.bytes(e.getKey())));
        }
        stage.check(stage.consume(queue).within(300) == null, "a refused message was delivered");
    }
}
