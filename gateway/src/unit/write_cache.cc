#include "unit/write_cache.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "unit/ranges/range_table.h"

namespace sluice::lun {

using Done = std::function<void(const backend::Io&)>;

// The transition from "reported off" to "off". A unit has at most one. Later requests share its
// flush and its result: their writes are in that flush, and two flushes with different results
// would make one answer wrong.
struct CacheSettling {
  struct Waiter {
    ReactorContext context;  // where its callback runs; without reactors: anywhere
    Done done;
  };
  std::shared_ptr<Unit> unit;
  std::shared_ptr<backend::Backend> backend;
  ReactorContext context;
  RangeHold hold;
  backend::Io io;
  std::vector<Waiter> waiters;           // protected by the unit's mutex
  std::shared_ptr<CacheSettling> alive;  // keeps this alive while `hold` or `io` refer to it
};

namespace {

using SettlingPtr = std::shared_ptr<CacheSettling>;

constexpr auto kPatience = std::chrono::minutes(5);  // enough for a large cache on a slow disk

void flushed(CacheSettling& settling) {
  const SettlingPtr self = std::move(settling.alive);
  const ReactorContext& context = self->context;
  std::vector<CacheSettling::Waiter> waiters;
  {
    const std::lock_guard lock(self->unit->mutex());
    // Earlier writes may still be in the cache that is reported as off.
    if (self->io.result < 0) (void)self->backend->set_write_cache(true);
    self->unit->cache_settling_locked().reset();
    waiters = std::move(self->waiters);
  }
  self->unit->ranges().release(context.reactor, self->hold, context.reactors);
  for (const CacheSettling::Waiter& waiter : waiters) {
    if (!waiter.context.reactors || waiter.context.reactor == context.reactor) {
      waiter.done(self->io);
    } else {
      waiter.context.reactors->post(waiter.context.reactor,
                                    [self, done = waiter.done] { done(self->io); });
    }
  }
}

void flush(CacheSettling& settling) {
  backend::Io& io = settling.io;
  // The unit lost its backend meanwhile; the cache of a new one was never reported as off.
  if (settling.unit->shared_backend() != settling.backend) {
    io.result = -ENODEV;
    return flushed(settling);
  }
  io.op = backend::Op::kFlush;
  io.context = &settling;
  io.done = [](backend::Io& ended) { flushed(*static_cast<CacheSettling*>(ended.context)); };
  if (settling.backend->submit(io, *settling.context.aio)) flushed(settling);
}

using Granted = void (*)(RangeHold& hold);

void acquire(CacheSettling& settling, uint64_t first, Granted granted) {
  RangeHold& hold = settling.hold;
  hold = RangeHold();
  hold.first = first;
  hold.last = std::max<uint64_t>(settling.unit->blocks(), 1) - 1;
  hold.on_grant = granted;
  hold.context = &settling;
  const ReactorContext& context = settling.context;
  if (settling.unit->ranges().acquire(context.reactor, hold, context.reactors)) granted(hold);
}

// A flush may take long, so no blocks are held during it, except one shared block that prevents the
// backend from closing (unit/closing.cc).
void hold_one_block(RangeHold& hold) {
  CacheSettling& settling = *static_cast<CacheSettling*>(hold.context);
  settling.unit->ranges().release(settling.context.reactor, hold, settling.context.reactors);
  acquire(settling, std::max<uint64_t>(settling.unit->blocks(), 1) - 1,
          [](RangeHold& one) { flush(*static_cast<CacheSettling*>(one.context)); });
}

// On the context's reactor; the mode is already off. Earlier writes to the device may complete
// after the flush without being in it. A shared hold on all blocks waits for them.
void settle(const SettlingPtr& settling) {
  settling->alive = settling;
  acquire(*settling, 0, hold_one_block);
}

// The caller holds the mutex. Null: the backend can't. *begun: the caller must start the settling.
SettlingPtr switch_off_locked(Unit& unit, bool* begun, Result<void>* set) {
  SettlingPtr& present = unit.cache_settling_locked();
  *begun = !present;
  if (present) return present;
  *set = unit.backend().set_write_cache(false);
  if (!*set) return nullptr;
  present = std::make_shared<CacheSettling>();
  present->unit = unit.shared_from_this();
  present->backend = unit.shared_backend_locked();
  return present;
}

// Shared by the waiting thread and the reactor, which may be later.
struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  bool there = false;
  int64_t result = 0;
};

using AnswerPtr = std::shared_ptr<Answer>;

void give(const AnswerPtr& answer, int64_t result) {
  const std::lock_guard lock(answer->mutex);
  answer->result = result;
  answer->there = true;
  answer->changed.notify_all();
}

// nullptr: timeout.
const int64_t* take(const AnswerPtr& answer) {
  std::unique_lock lock(answer->mutex);
  return answer->changed.wait_for(lock, kPatience, [&] { return answer->there; }) ? &answer->result
                                                                                  : nullptr;
}

Error takes_long() {
  return Error{"turning the write cache off: flushing it takes long and goes on; check the medium"};
}

// For control threads. *answer receives the result of switching off; null: it is already off.
Result<void> begin_switching_off(Unit& unit, AnswerPtr* answer) {
  SettlingPtr settling;
  bool begun = false;
  Reactors* reactors = nullptr;
  {
    const std::lock_guard lock(unit.mutex());
    if (unit.cache_settling_locked() || unit.backend().write_cache()) {
      Result<void> set;
      settling = switch_off_locked(unit, &begun, &set);
      if (!settling) return set;
    }
    // From now on a reset also leaves it off.
    unit.set_default_write_cache(false);
    if (!settling) return {};
    if (begun) settling->context = unit.attached().any_reactor_context_locked();
    reactors = settling->context.reactors;
    if (!reactors) {  // there never was a nexus, so nothing was written
      unit.cache_settling_locked().reset();
      return {};
    }
    *answer = std::make_shared<Answer>();
    settling->waiters.push_back(
        {ReactorContext(), [answer = *answer](const backend::Io& io) { give(answer, io.result); }});
  }
  if (begun) reactors->post(settling->context.reactor, [settling] { settle(settling); });
  return {};
}

Result<void> switch_off(Unit& unit) {
  AnswerPtr answer;
  Result<void> begun = begin_switching_off(unit, &answer);
  if (!begun || !answer) return begun;
  const int64_t* result = take(answer);
  if (!result) return takes_long();
  if (*result >= 0) return {};
  return Error{std::string("can't turn the write cache off: flushing it failed: ") +
               std::strerror(static_cast<int>(-*result)) + "; check the medium"};
}

// If the cache is being switched off, waits for that first.
Result<void> switch_on(Unit& unit) {
  AnswerPtr answer;
  {
    const std::lock_guard lock(unit.mutex());
    const SettlingPtr& settling = unit.cache_settling_locked();
    if (!settling) {
      Result<void> set = unit.backend().set_write_cache(true);
      if (set) unit.set_default_write_cache(true);
      return set;
    }
    answer = std::make_shared<Answer>();
    settling->waiters.push_back(
        {ReactorContext(), [answer](const backend::Io& io) { give(answer, io.result); }});
  }
  return take(answer) ? switch_on(unit) : takes_long();
}

}  // namespace

bool disable_write_cache(Unit& unit, const ReactorContext& context, Done done) {
  SettlingPtr settling;
  bool begun = false;
  {
    const std::lock_guard lock(unit.mutex());
    Result<void> set;
    settling = switch_off_locked(unit, &begun, &set);
    if (!settling) return false;
    if (begun) settling->context = context;
    settling->waiters.push_back({context, std::move(done)});
  }
  if (begun) settle(settling);
  return true;
}

std::optional<bool> enable_write_cache(Unit& unit) {
  const std::lock_guard lock(unit.mutex());
  if (unit.cache_settling_locked()) return std::nullopt;
  return unit.backend().set_write_cache(true).ok();
}

void reset_cache(Unit& unit, const ReactorContext& context, std::function<void()> done) {
  const auto again = [unit = unit.shared_from_this(), done](const backend::Io&) {
    if (unit->default_write_cache()) (void)enable_write_cache(*unit);
    done();
  };
  if (unit.default_write_cache()) {
    // If it is being switched off, that ends first.
    if (enable_write_cache(unit) || !disable_write_cache(unit, context, again)) done();
  } else if (!unit.reported_write_cache() || !disable_write_cache(unit, context, again)) {
    done();
  }
}

Result<void> set_write_cache(Unit& unit, bool on) {
  return on ? switch_on(unit) : switch_off(unit);
}

}  // namespace sluice::lun
