import com.rabbitmq.client.Channel;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Fixed delays: one waiting queue for each, all of them dead-lettering to the same worker. */
final class Tiers implements Scheme {
    private record Tier(String name, Object ttl, long millis) {}

    @Override
    public void play(Stage stage) throws Exception {
        String waitExchange = stage.exchange("wait", "direct");
        String workExchange = stage.exchange("work", "direct");
        String workQueue = stage.queue("work.q");
        Channel channel = stage.channel();
        channel.queueBind(workQueue, workExchange, "work");

        // A client may send the TTL as any integer type.
        List<Tier> tiers = List.of(
                new Tier("long", 1500L, 1500), new Tier("middle", 900, 900), new Tier("short", (short) 400, 400));
        for (Tier tier : tiers) {
            String queue = stage.queue("wait." + tier.name(), Map.of(
                    "x-message-ttl", tier.ttl(),
                    "x-dead-letter-exchange", workExchange,
                    "x-dead-letter-routing-key", "work"));
            channel.queueBind(queue, waitExchange, tier.name());
        }

        Map<String, Long> due = new HashMap<>();
        for (int round = 0; round < 4; round++) {
            for (Tier tier : tiers) {
                String body = tier.name() + " " + round;
                due.put(body, System.currentTimeMillis() + tier.millis());
                channel.basicPublish(waitExchange, tier.name(), new Post().props(), Post.bytes(body));
            }
        }

        Inbox inbox = stage.consume(workQueue);
        Map<String, Integer> next = new HashMap<>();
        for (int i = 0; i < 12; i++) {
            Inbox.Letter letter = inbox.take();
            stage.onTime(letter.body(), due.get(letter.body()), letter.arrived());
            String[] words = letter.body().split(" ");
            // Within one tier the order of publishing stands.
            stage.equal(words[1], next.merge(words[0], 1, Integer::sum) - 1, "order within tier " + words[0]);
            stage.equal(Death.of(letter).get(0).get("queue"), stage.name("wait." + words[0]), "tier that it waited in");
        }
        stage.check(inbox.within(200) == null, "a message too many");
    }
}
