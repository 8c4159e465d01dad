import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A consumer with manual acks that notes when each message came. */
final class Inbox {
    /** Longest wait for a message that must come. */
    private static final long PATIENCE_SECONDS = 30;

    record Letter(Delivery delivery, long arrived) {
        String body() {
            return new String(delivery.getBody(), StandardCharsets.UTF_8);
        }

        AMQP.BasicProperties props() {
            return delivery.getProperties();
        }

        Map<String, Object> headers() {
            Map<String, Object> headers = props().getHeaders();
            return headers == null ? Map.of() : headers;
        }

        long tag() {
            return delivery.getEnvelope().getDeliveryTag();
        }

        String key() {
            return delivery.getEnvelope().getRoutingKey();
        }

        boolean redelivered() {
            return delivery.getEnvelope().isRedeliver();
        }
    }

    private final Channel channel;
    private final BlockingQueue<Letter> letters = new LinkedBlockingQueue<>();
    private final String consumerTag;

    Inbox(Channel channel, String queue, int prefetch) throws Exception {
        this.channel = channel;
        channel.basicQos(prefetch);
        consumerTag = channel.basicConsume(
                queue,
                false,
                (tag, delivery) -> letters.add(new Letter(delivery, System.currentTimeMillis())),
                tag -> {});
    }

    Channel channel() {
        return channel;
    }

    /** The next message, not yet settled. */
    Letter next() throws Exception {
        Letter letter = letters.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
        if (letter == null) {
            throw new AssertionError("no message within " + PATIENCE_SECONDS + " s");
        }
        return letter;
    }

    /** The next message, acknowledged. */
    Letter take() throws Exception {
        Letter letter = next();
        channel.basicAck(letter.tag(), false);
        return letter;
    }

    /** A message if one comes within the time, else null. */
    Letter within(long millis) throws Exception {
        return letters.poll(millis, TimeUnit.MILLISECONDS);
    }

    void cancel() throws Exception {
        channel.basicCancel(consumerTag);
    }
}
