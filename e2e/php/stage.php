<?php

declare(strict_types=1);

use PhpAmqpLib\Channel\AMQPChannel;
use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Exception\AMQPTimeoutException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

const PATIENCE = 30.0;

/** A connection, names that no other run uses, and the checks. */
final class Stage
{
    public AMQPStreamConnection $connection;
    /** Declarations and publishing, with confirms; consumers use channels of their own. */
    public AMQPChannel $channel;
    public int $checks = 0;
    private string $prefix;
    private float $slack;
    /** @var list<callable(AMQPChannel): mixed> */
    private array $undo = [];

    public function __construct(string $scheme)
    {
        $url = parse_url(getenv('DUEPOST_E2E_URL') ?: 'amqp://guest:guest@127.0.0.1:5672');
        $this->connection = new AMQPStreamConnection($url['host'], $url['port'], $url['user'], $url['pass']);
        $this->channel = $this->connection->channel();
        $this->channel->confirm_select();
        $this->prefix = "php.$scheme." . bin2hex(random_bytes(4)) . '.';
        $this->slack = (float) (getenv('DUEPOST_E2E_SLACK_MS') ?: 3000) / 1000;
    }

    /** Deletes what was declared and disconnects. */
    public function close(): void
    {
        $channel = $this->connection->channel();
        foreach ($this->undo as $undo) {
            $undo($channel);
        }
        $this->connection->close();
    }

    public function name(string $suffix): string
    {
        return $this->prefix . $suffix;
    }

    /** Declares a durable exchange and returns its full name. */
    public function exchange(string $suffix, string $type, array $arguments = []): string
    {
        $name = $this->name($suffix);
        $this->channel->exchange_declare($name, $type, false, true, false, false, false, new AMQPTable($arguments));
        $this->undo[] = fn (AMQPChannel $channel) => $channel->exchange_delete($name);
        return $name;
    }

    /** Declares a durable queue and returns its full name. */
    public function queue(string $suffix, array $arguments = []): string
    {
        $name = $this->name($suffix);
        $this->channel->queue_declare($name, false, true, false, false, false, new AMQPTable($arguments));
        $this->undo[] = fn (AMQPChannel $channel) => $channel->queue_delete($name);
        return $name;
    }

    public function bind(string $queue, string $exchange, string $key): void
    {
        $this->channel->queue_bind($queue, $exchange, $key);
    }

    public function ready(string $queue): int
    {
        return $this->channel->queue_declare($queue, true)[1];
    }

    /** Publishes a persistent message and returns when it is confirmed. */
    public function publish(
        string $exchange,
        string $key,
        string $body,
        array $properties = [],
        bool $mandatory = false
    ): void {
        $this->channel->basic_publish($this->message($body, $properties), $exchange, $key, $mandatory);
        $this->channel->wait_for_pending_acks_returns(PATIENCE);
    }

    public function message(string $body, array $properties = []): AMQPMessage
    {
        if (isset($properties['application_headers'])) {
            $properties['application_headers'] = new AMQPTable($properties['application_headers']);
        }
        return new AMQPMessage($body, ['delivery_mode' => AMQPMessage::DELIVERY_MODE_PERSISTENT] + $properties);
    }

    public function consume(string $queue, int $prefetch = 0): Inbox
    {
        return new Inbox($this, $queue, $prefetch);
    }

    public function check(bool $holds, string $claim): void
    {
        $this->checks++;
        if (!$holds) {
            throw new LogicException($claim);
        }
    }

    public function equal(mixed $got, mixed $want, string $what): void
    {
        $this->check($got === $want, sprintf('%s: got %s, want %s', $what, json_encode($got), json_encode($want)));
    }

    /** Never early, and late by no more than a busy machine explains. Instants in Unix seconds. */
    public function onTime(string $what, float $due, float $arrived): void
    {
        $late = $arrived - $due;
        printf("%s: %.1f ms after due\n", $what, $late * 1000);
        $this->check($late >= 0 && $late <= $this->slack, sprintf('%s came %.1f ms after it was due', $what, $late * 1000));
    }

    /** Runs an action that the broker must answer by closing the channel. */
    public function refused(int $code, string $what, callable $act): void
    {
        $channel = $this->connection->channel();
        try {
            $act($channel);
            // A refused publish shows at the next method that has an answer.
            $channel->basic_qos(0, 1, false);
        } catch (AMQPProtocolChannelException $closed) {
            $this->equal($closed->getCode(), $code, "$what ({$closed->getMessage()})");
            return;
        }
        $this->check(false, "$what was not refused");
    }
}

/** A message and when it came. */
final class Letter
{
    public function __construct(public AMQPMessage $message, public float $arrived)
    {
    }

    public function headers(): array
    {
        return $this->message->has('application_headers')
            ? $this->message->get('application_headers')->getNativeData() : [];
    }

    /** The entries of x-death, newest first, each reduced to what is checked. */
    public function deaths(): array
    {
        return array_map(
            fn (array $e) => death($e['queue'], $e['reason'], $e['count'], $e['exchange'], ...$e['routing-keys']),
            $this->headers()['x-death'] ?? []
        );
    }
}

function death(string $queue, string $reason, int $count, string $exchange, string ...$keys): array
{
    return [$queue, $reason, $count, $exchange, $keys];
}

/** A consumer with manual acks that notes when each message came. */
final class Inbox
{
    public AMQPChannel $channel;
    /** @var list<Letter> */
    private array $letters = [];

    public function __construct(private Stage $stage, string $queue, int $prefetch)
    {
        $this->channel = $stage->connection->channel();
        $this->channel->basic_qos(0, $prefetch, false);
        $this->channel->basic_consume(
            $queue,
            '',
            false,
            false,
            false,
            false,
            function (AMQPMessage $message): void {
                $this->letters[] = new Letter($message, microtime(true));
            }
        );
    }

    /** The next message, not yet settled, or null if none comes in time. */
    public function within(float $seconds): ?Letter
    {
        $end = hrtime(true) + $seconds * 1e9;
        while ($this->letters === [] && ($left = ($end - hrtime(true)) / 1e9) > 0) {
            try {
                $this->channel->wait(null, false, $left);
            } catch (AMQPTimeoutException) {
                break;
            }
        }
        return array_shift($this->letters);
    }

    public function next(): Letter
    {
        $letter = $this->within(PATIENCE);
        $this->stage->check($letter !== null, 'no message within ' . PATIENCE . ' s');
        return $letter;
    }

    /** The next message, acknowledged. */
    public function take(): Letter
    {
        $letter = $this->next();
        $letter->message->ack();
        return $letter;
    }

    public function nothing(float $seconds, string $why): void
    {
        $letter = $this->within($seconds);
        $this->stage->check($letter === null, "$why: got " . $letter?->message->getBody());
    }
}
