// Plays one scheme against the broker at DUEPOST_E2E_URL and says by its exit code whether the
// broker kept its word. Without arguments it lists the schemes.
import * as delayed from './delayed.js';
import * as routing from './routing.js';
import * as settling from './settling.js';
import { Stage } from './stage.js';
import * as ttl from './ttl.js';

const schemes = {
  confirms: settling.confirms,
  'delayed-exchange': delayed.exchange,
  'delayed-retry': settling.delayedRetry,
  'delayed-types': delayed.types,
  'head-of-line': ttl.headOfLine,
  'manual-ack': settling.manualAck,
  'order-close': ttl.orderClose,
  'queue-ttl': ttl.queueTTL,
  rejects: settling.rejects,
  returns: settling.returns,
  routing: routing.routing,
  staircase: delayed.staircase,
  tiers: ttl.tiers,
};

const name = process.argv[2];
if (name === undefined) {
  console.log(Object.keys(schemes).join('\n'));
} else if (!(name in schemes)) {
  console.error(`no scheme named ${name}`);
  process.exitCode = 2;
} else {
  const stage = await Stage.open(name);
  try {
    await schemes[name](stage);
    await stage.close();
    console.log(`played ${name}: ${stage.checks} checks`);
  } catch (fault) {
    console.error(fault);
    process.exit(1); // consumers would keep the process alive
  }
}
