import com.rabbitmq.client.Channel;
import java.util.NavigableSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Publisher confirms, correlated by sequence number, one by one and many at once. */
final class Confirms implements Scheme {
    private static final int MANY = 1000;

    @Override
    public void play(Stage stage) throws Exception {
        String queue = stage.queue("work");
        Channel channel = stage.channel();
        channel.confirmSelect();
        NavigableSet<Long> open = new ConcurrentSkipListSet<>();
        AtomicInteger nacks = new AtomicInteger();
        CountDownLatch settled = new CountDownLatch(MANY);
        channel.addConfirmListener(
                (tag, multiple) -> settle(open, settled, tag, multiple),
                (tag, multiple) -> nacks.incrementAndGet());
        for (int i = 0; i < MANY; i++) {
            open.add(channel.getNextPublishSeqNo());
            channel.basicPublish("", queue, new Post().props(), Post.bytes("" + i));
        }
        stage.check(settled.await(30, TimeUnit.SECONDS), "confirms missing: " + open.size());
        stage.equal(nacks.get(), 0, "nacks");
        stage.equal(stage.ready(queue), MANY, "messages in the queue when all are confirmed");

        // One at a time: each confirm must come without a second publish to push it.
        for (int i = 0; i < 20; i++) {
            channel.basicPublish("", queue, new Post().props(), Post.bytes("single"));
            stage.check(channel.waitForConfirms(5_000), "confirm of a single message");
        }
        // What goes nowhere is confirmed too.
        channel.basicPublish("", stage.name("nowhere"), new Post().props(), Post.bytes("lost"));
        stage.check(channel.waitForConfirms(5_000), "confirm of an unroutable message");

        Inbox inbox = stage.consume(queue);
        for (int i = 0; i < MANY; i++) {
            stage.equal(inbox.take().body(), i, "order");
        }
    }

    private static void settle(NavigableSet<Long> open, CountDownLatch settled, long tag, boolean multiple) {
        // Publishing adds at the far end meanwhile, so only what is removed is counted.
        while (multiple && !open.isEmpty() && open.first() <= tag) {
            open.pollFirst();
            settled.countDown();
        }
        if (!multiple && open.remove(tag)) {
            settled.countDown();
        }
    }
}
