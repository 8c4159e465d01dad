import com.rabbitmq.client.Channel;
import java.util.List;
import java.util.Map;

/** What a worker refuses for good goes to the dead-letter exchange with the reason in x-death. */
final class Rejects implements Scheme {
    @Override
    public void play(Stage stage) throws Exception {
        String business = stage.exchange("simple.direct", "direct");
        String dlx = stage.exchange("dlx.direct", "direct");
        String queue = stage.queue("simple.queue", Map.of("x-dead-letter-exchange", dlx));
        String dead = stage.queue("dlx.queue");
        Channel channel = stage.channel();
        channel.queueBind(queue, business, "simple");
        channel.queueBind(dead, dlx, "simple");
        Post post = new Post().header("order", 42);
        channel.basicPublish(business, "simple", post.props(), Post.bytes("nack"));
        channel.basicPublish(business, "simple", post.props(), Post.bytes("reject"));

        Inbox worker = stage.consume(queue);
        worker.channel().basicNack(worker.next().tag(), false, false);
        worker.channel().basicReject(worker.next().tag(), false);
        worker.cancel();
        // With no worker left, the third message dies of its age.
        channel.basicPublish(business, "simple", new Post().expiration(400).props(), Post.bytes("expire"));

        Inbox inbox = stage.consume(dead);
        for (String want : List.of("nack", "reject", "expire")) {
            Inbox.Letter letter = inbox.take();
            String reason = want.equals("expire") ? "expired" : "rejected";
            stage.equal(letter.body(), want, "dead letter");
            stage.equal(letter.key(), "simple", "routing key");
            List<Death> deaths = Death.of(letter);
            stage.equal(deaths.size(), 1, "x-death entries of " + want);
            deaths.get(0).check(stage, queue, reason, 1, business, "simple");
            stage.equal(letter.headers().get("x-first-death-reason"), reason, "first death reason");
            stage.equal(letter.headers().get("order"), want.equals("expire") ? null : 42, "own header");
        }
    }
}
