import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.UUID;

/**
 * A connection, names that no other run uses, and the checks. What was declared through it is
 * deleted when it closes.
 */
final class Stage implements AutoCloseable {
    private interface Undo {
        void run(Channel channel) throws Exception;
    }

    private final Connection connection;
    private final Channel channel;
    private final String prefix;
    private final long slackMillis;
    private final Deque<Undo> undo = new ArrayDeque<>();
    private int checks;

    private Stage(Connection connection, String prefix, long slackMillis) throws Exception {
        this.connection = connection;
        this.channel = connection.createChannel();
        this.prefix = prefix;
        this.slackMillis = slackMillis;
    }

    static Stage open(String scheme) throws Exception {
        String url = System.getenv().getOrDefault("DUEPOST_E2E_URL", "amqp://guest:guest@127.0.0.1:5672");
        String slack = System.getenv().getOrDefault("DUEPOST_E2E_SLACK_MS", "3000");
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(url);
        factory.setAutomaticRecoveryEnabled(false);
        String run = UUID.randomUUID().toString().substring(0, 8);
        return new Stage(
                factory.newConnection("java " + scheme),
                "java." + scheme + "." + run + ".",
                Long.parseLong(slack));
    }

    /** The channel for declarations and for publishing; consumers use channels of their own. */
    Channel channel() {
        return channel;
    }

    Channel newChannel() throws Exception {
        return connection.createChannel();
    }

    String name(String suffix) {
        return prefix + suffix;
    }

    /** Declares a durable exchange and returns its full name. */
    String exchange(String suffix, String type, Map<String, Object> arguments) throws Exception {
        String name = name(suffix);
        channel.exchangeDeclare(name, type, true, false, arguments);
        undo.push(ch -> ch.exchangeDelete(name));
        return name;
    }

    String exchange(String suffix, String type) throws Exception {
        return exchange(suffix, type, Map.of());
    }

    /** Declares a durable queue and returns its full name. */
    String queue(String suffix, Map<String, Object> arguments) throws Exception {
        String name = name(suffix);
        channel.queueDeclare(name, true, false, false, arguments);
        undo.push(ch -> ch.queueDelete(name));
        return name;
    }

    String queue(String suffix) throws Exception {
        return queue(suffix, Map.of());
    }

    Inbox consume(String queue) throws Exception {
        return new Inbox(newChannel(), queue, 250);
    }

    /** Messages ready in the queue, as a passive declare tells. */
    int ready(String queue) throws Exception {
        return channel.queueDeclarePassive(queue).getMessageCount();
    }

    int checks() {
        return checks;
    }

    void check(boolean holds, String claim) {
        checks++;
        if (!holds) {
            throw new AssertionError(claim);
        }
    }

    void equal(Object got, Object want, String what) {
        check(String.valueOf(want).equals(String.valueOf(got)), what + ": got " + got + ", want " + want);
    }

    void same(Map<String, Object> got, Map<String, Object> want, String what) {
        check(want.equals(got), what + ": got " + got + ", want " + want);
    }

    /** Never early, and late by no more than a busy machine explains. Instants in Unix ms. */
    void onTime(String what, long due, long arrived) {
        System.out.println(what + ": " + (arrived - due) + " ms after due");
        check(arrived >= due, what + " came " + (due - arrived) + " ms early");
        check(arrived <= due + slackMillis, what + " came " + (arrived - due) + " ms late");
    }

    /** Runs an action that the broker must answer by closing the channel with this code. */
    void refused(int code, String what, Step step) throws Exception {
        Channel own = newChannel();
        ShutdownSignalException signal;
        try {
            step.run(own);
            // A refused publish shows at the next synchronous method only.
            own.basicQos(1);
            own.basicQos(2);
            check(false, what + " was not refused");
            return;
        } catch (java.io.IOException e) {
            if (!(e.getCause() instanceof ShutdownSignalException)) {
                throw e;
            }
            signal = (ShutdownSignalException) e.getCause();
        } catch (ShutdownSignalException e) {
            signal = e;
        }
        check(!signal.isHardError(), what + " closed the connection: " + signal);
        AMQP.Channel.Close close = (AMQP.Channel.Close) signal.getReason();
        equal(close.getReplyCode(), code, what + " (" + close.getReplyText() + ")");
    }

    interface Step {
        void run(Channel channel) throws Exception;
    }

    @Override
    public void close() throws Exception {
        if (!connection.isOpen()) {
            return;
        }
        Channel last = connection.createChannel();
        for (Undo u : undo) {
            u.run(last);
        }
        connection.close();
    }
}
