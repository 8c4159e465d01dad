import com.rabbitmq.client.Channel;
import com.rabbitmq.client.GetResponse;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeSet;

/** The three exchange types that every introduction shows: fanout, direct, topic. */
final class Routing implements Scheme {
    private Stage stage;
    private Channel channel;

    @Override
    public void play(Stage stage) throws Exception {
        this.stage = stage;
        this.channel = stage.channel();
        channel.confirmSelect();
        fanout();
        direct();
        topic();
    }

    private void fanout() throws Exception {
        String exchange = stage.exchange("news", "fanout");
        Map<String, String> queues = Map.of("mail", stage.queue("mail"), "sms", stage.queue("sms"));
        for (String queue : queues.values()) {
            channel.queueBind(queue, exchange, "ignored");
        }
        reaches(exchange, "anything", queues, "mail sms");
        reaches(exchange, "", queues, "mail sms");
    }

    private void direct() throws Exception {
        String exchange = stage.exchange("log", "direct");
        Map<String, String> queues = Map.of("all", stage.queue("all"), "errors", stage.queue("errors"));
        for (String key : new String[] {"info", "warning", "error"}) {
            channel.queueBind(queues.get("all"), exchange, key);
        }
        channel.queueBind(queues.get("errors"), exchange, "error");
        reaches(exchange, "info", queues, "all");
        reaches(exchange, "error", queues, "all errors");
        reaches(exchange, "Error", queues, "");
        reaches(exchange, "error.x", queues, "");
    }

    private void topic() throws Exception {
        String exchange = stage.exchange("animals", "topic");
        Map<String, String> queues = Map.of("orange", stage.queue("orange"), "rabbit", stage.queue("rabbit"));
        channel.queueBind(queues.get("orange"), exchange, "*.orange.*");
        channel.queueBind(queues.get("rabbit"), exchange, "*.*.rabbit");
        channel.queueBind(queues.get("rabbit"), exchange, "lazy.#");
        reaches(exchange, "quick.orange.rabbit", queues, "orange rabbit");
        reaches(exchange, "lazy.orange.elephant", queues, "orange rabbit");
        reaches(exchange, "quick.orange.fox", queues, "orange");
        reaches(exchange, "lazy.brown.fox", queues, "rabbit");
        reaches(exchange, "lazy.pink.rabbit", queues, "rabbit"); // two bindings, one copy
        reaches(exchange, "quick.brown.fox", queues, "");
        reaches(exchange, "orange", queues, "");
        reaches(exchange, "quick.orange.new.rabbit", queues, "");
        reaches(exchange, "lazy", queues, "rabbit"); // # matches no word as well
        reaches(exchange, "lazy.orange.new.rabbit", queues, "rabbit");
    }

    /** Publishes once and looks into every queue: exactly one copy where expected, else nothing. */
    private void reaches(String exchange, String key, Map<String, String> queues, String want) throws Exception {
        channel.basicPublish(exchange, key, new Post().props(), Post.bytes(key));
        stage.check(channel.waitForConfirms(5_000), "confirm");
        TreeSet<String> got = new TreeSet<>();
        for (Map.Entry<String, String> queue : queues.entrySet()) {
            for (GetResponse r = channel.basicGet(queue.getValue(), true); r != null;
                    r = channel.basicGet(queue.getValue(), true)) {
                stage.equal(new String(r.getBody(), StandardCharsets.UTF_8), key, "body");
                stage.check(got.add(queue.getKey()), key + " reached " + queue.getKey() + " twice");
            }
        }
        stage.equal(String.join(" ", got), want, "queues that " + key + " reached");
    }
}
