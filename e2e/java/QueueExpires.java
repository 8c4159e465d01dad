import com.rabbitmq.client.Channel;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * x-expires is about the queue, not about its messages: a queue that nobody uses for that long is
 * deleted, and what was in it is not dead-lettered. Publishing is no use.
 */
final class QueueExpires implements Scheme {
    private static final int UNUSED = 1000;

    @Override
    public void play(Stage stage) throws Exception {
        String dead = stage.queue("dead");
        Channel channel = stage.channel();
        channel.confirmSelect();
        AtomicInteger returned = new AtomicInteger();
        channel.addReturnListener(r -> returned.incrementAndGet());
        String queue = stage.name("fleeting");
        long declared = System.currentTimeMillis();
        channel.queueDeclare(queue, true, false, false, Map.of(
                "x-expires", UNUSED, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead));

        long gone;
        do {
            Thread.sleep(50);
            channel.basicPublish("", queue, true, new Post().props(), Post.bytes("is it there?"));
            stage.check(channel.waitForConfirms(5_000), "confirm");
            gone = System.currentTimeMillis();
        } while (returned.get() == 0 && gone < declared + 30_000);
        stage.onTime("queue deleted", declared + UNUSED, gone);
        stage.refused(404, "passive declare of the deleted queue", ch -> ch.queueDeclarePassive(queue));
        Inbox inbox = stage.consume(dead);
        stage.check(inbox.within(300) == null, "an expired queue dead-lettered a message");

        // A consumer keeps its queue.
        String kept = stage.queue("kept", Map.of("x-expires", 300));
        Inbox worker = stage.consume(kept);
        stage.check(worker.within(900) == null, "message out of nowhere");
        channel.basicPublish("", kept, new Post().props(), Post.bytes("still here"));
        stage.equal(worker.take().body(), "still here", "message in the kept queue");
    }
}
