// What a reactor provides to the commands that run on it.
#pragma once

#include "base/aio.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/reactors.h"

namespace sluice::lun {

class Forwarding;
class LatencyLog;

struct ReactorContext {
  Aio* aio = nullptr;
  BufferPool* buffers = nullptr;
  Reactors* reactors = nullptr;
  unsigned reactor = 0;
  const Nanos* now = nullptr;  // the reactor's time of the current batch
  LatencyLog* latencies = nullptr;
  Forwarding* forwarding = nullptr;  // null: a gateway without a control plane
  // Reads the clock of `now` again, for Command::fresh_until; null: commands have no freshness
  // limit.
  Nanos (*clock)() = nullptr;
};

}  // namespace sluice::lun
