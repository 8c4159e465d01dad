import com.rabbitmq.client.Channel;
import java.util.List;
import java.util.Map;

/**
 * A failed message comes again after a pause: the worker rejects it, the dead-letter exchange puts
 * it into a waiting queue, and that queue dead-letters it back. x-death counts the rounds.
 */
final class DelayedRetry implements Scheme {
    private static final int PAUSE = 300;

    @Override
    public void play(Stage stage) throws Exception {
        String workExchange = stage.exchange("work", "direct");
        String retryExchange = stage.exchange("retry", "direct");
        String work = stage.queue("work.q", Map.of("x-dead-letter-exchange", retryExchange));
        String pause = stage.queue("pause.q", Map.of(
                "x-message-ttl", PAUSE, "x-dead-letter-exchange", workExchange));
        Channel channel = stage.channel();
        channel.queueBind(work, workExchange, "job");
        channel.queueBind(pause, retryExchange, "job");
        channel.basicPublish(workExchange, "job", new Post().props(), Post.bytes("flaky"));

        Inbox inbox = stage.consume(work);
        long due = System.currentTimeMillis() - PAUSE;
        for (long attempt = 0; attempt < 4; attempt++) {
            Inbox.Letter letter = inbox.next();
            if (attempt > 0) {
                stage.onTime("attempt " + attempt, due, letter.arrived());
            }
            stage.check(!letter.redelivered(), "a dead-lettered message is marked as redelivered");
            List<Death> deaths = Death.of(letter);
            stage.equal(deaths.size(), attempt == 0 ? 0 : 2, "x-death entries at attempt " + attempt);
            if (attempt > 0) {
                deaths.get(0).check(stage, pause, "expired", attempt, retryExchange, "job");
                deaths.get(1).check(stage, work, "rejected", attempt, workExchange, "job");
                stage.equal(letter.headers().get("x-first-death-reason"), "rejected", "first death reason");
                stage.equal(letter.headers().get("x-first-death-queue"), work, "first death queue");
            }
            if (attempt == 3) {
                inbox.channel().basicAck(letter.tag(), false);
                break;
            }
            due = System.currentTimeMillis() + PAUSE;
            inbox.channel().basicReject(letter.tag(), false);
        }
        stage.check(inbox.within(2 * PAUSE) == null, "an acknowledged message came again");
    }
}
