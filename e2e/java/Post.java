import com.rabbitmq.client.AMQP;
import java.util.HashMap;
import java.util.Map;

/** Builds message properties as a Spring template with a JSON converter fills them. */
final class Post {
    private final AMQP.BasicProperties.Builder builder =
            new AMQP.BasicProperties.Builder().contentType("application/json").deliveryMode(2);
    private final Map<String, Object> headers = new HashMap<>();

    Post header(String name, Object value) {
        headers.put(name, value);
        return this;
    }

    Post expiration(long millis) {
        builder.expiration(Long.toString(millis));
        return this;
    }

    Post messageId(String id) {
        builder.messageId(id);
        return this;
    }

    AMQP.BasicProperties props() {
        return builder.headers(headers.isEmpty() ? null : headers).build();
    }

    static byte[] bytes(String text) {
        return text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }
}
