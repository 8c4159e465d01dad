import com.rabbitmq.client.Channel;
import java.util.ArrayList;
import java.util.List;

/**
 * Acknowledging by hand: what failed goes back to the queue and comes again, marked as redelivered;
 * prefetch holds back the rest; what a closed channel leaves unsettled is given to the next one.
 */
final class ManualAck implements Scheme {
    @Override
    public void play(Stage stage) throws Exception {
        requeue(stage);
        prefetch(stage);
        closedChannel(stage);
        stage.refused(406, "unknown delivery tag", ch -> ch.basicAck(99, false));
    }

    private static void requeue(Stage stage) throws Exception {
        String queue = stage.queue("requeue");
        stage.channel().basicPublish("", queue, new Post().props(), Post.bytes("fails twice"));
        Inbox inbox = stage.consume(queue);
        for (int attempt = 0; attempt < 3; attempt++) {
            Inbox.Letter letter = inbox.next();
            stage.equal(letter.redelivered(), attempt > 0, "redelivered at attempt " + attempt);
            stage.check(!letter.headers().containsKey("x-death"), "a requeue left an x-death");
            switch (attempt) {
                case 0 -> inbox.channel().basicNack(letter.tag(), false, true);
                case 1 -> inbox.channel().basicReject(letter.tag(), true);
                default -> inbox.channel().basicAck(letter.tag(), false);
            }
        }
        inbox.cancel();
        stage.equal(stage.ready(queue), 0, "messages left");
    }

    private static void prefetch(Stage stage) throws Exception {
        String queue = stage.queue("prefetch");
        for (int i = 0; i < 5; i++) {
            stage.channel().basicPublish("", queue, new Post().props(), Post.bytes("" + i));
        }
        Inbox inbox = new Inbox(stage.newChannel(), queue, 2);
        inbox.next();
        Inbox.Letter second = inbox.next();
        stage.check(inbox.within(300) == null, "a third message despite a prefetch of two");
        inbox.channel().basicAck(second.tag(), true); // both
        inbox.next();
        Inbox.Letter fourth = inbox.next();
        stage.equal(fourth.body(), "3", "order");
        inbox.channel().basicNack(fourth.tag(), true, true); // both go back to their places
        List<String> rest = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Inbox.Letter letter = inbox.take();
            rest.add(letter.body() + (letter.redelivered() ? " again" : ""));
        }
        stage.equal(rest, List.of("2 again", "3 again", "4"), "rest of the queue");
    }

    private static void closedChannel(Stage stage) throws Exception {
        String queue = stage.queue("closed");
        for (int i = 0; i < 3; i++) {
            stage.channel().basicPublish("", queue, new Post().props(), Post.bytes("" + i));
        }
        Inbox first = stage.consume(queue);
        first.take();
        first.next();
        first.next();
        first.channel().close();
        Inbox second = stage.consume(queue);
        for (String want : List.of("1", "2")) {
            Inbox.Letter letter = second.take();
            stage.equal(letter.body(), want, "unsettled message");
            stage.check(letter.redelivered(), "unsettled message is not marked as redelivered");
        }
        Channel getter = stage.newChannel();
        stage.check(getter.basicGet(queue, false) == null, "an acknowledged message came back");
    }
}
