// The sequence of closing, close():
//
// 1. The gate closes.
// 2. Started commands complete, on every reactor.
// 3. An exclusive hold on all blocks waits for third-party copies from other units; later ones find
//   the gate closed.
// 4. A flush (release only).
// 5. The backend is detached and closes, which may take long.
//
// A fence first drops the nexuses, which aborts commands that were not started. It may overtake a
// release, even during its close.
#include "unit/closing.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/sequence.h"
#include "unit/countdown.h"
#include "unit/ranges/range_table.h"
#include "unit/unit.h"

namespace sluice::lun {

// A unit that loses its backend. The unit's mutex protects `fenced` and `done`.
struct Closing {
  std::shared_ptr<Unit> unit;
  Reactors* reactors = nullptr;
  bool fenced = false;
  std::vector<std::function<void(bool flushed)>> done;
};

namespace {

using ClosingPtr = std::shared_ptr<Closing>;

constexpr unsigned kHere = 0;  // the reactor that closes units

// R4: drops every nexus that has the unit, without answers. This includes nexuses that have not
// used it yet, because their first command for the unit may already be on its way.
void drop_nexuses(const ClosingPtr& closing, const char* why, std::function<void()> done) {
  auto all = std::make_shared<Countdown>([closing, done = std::move(done)]() mutable {
    closing->reactors->post(kHere, std::move(done));
  });
  std::vector<std::shared_ptr<AttachedNexus>> nexuses;
  std::vector<std::shared_ptr<ExportingTarget>> targets;
  {
    const std::lock_guard lock(closing->unit->mutex());
    nexuses = closing->unit->attached().living_locked();
    targets = closing->unit->targets_locked();
  }
  for (auto& nexus : nexuses) {
    all->begin();
    const unsigned reactor = nexus->reactor_context().reactor;
    closing->reactors->post(reactor, [nexus = std::move(nexus), all, why] {
      nexus->abort_commands(false, nullptr);
      nexus->drop_nexus(why);
      all->through();
    });
  }
  for (const auto& target : targets) {
    target->drop_unused_nexuses(closing->unit, *closing->reactors, why, all);
  }
  all->through();
}

bool fenced(const Closing& closing) {
  const std::lock_guard lock(closing.unit->mutex());
  return closing.fenced;
}

// --- the steps; each wait ends on reactor kHere

using Done = Until::Done;

// Started commands of every nexus have completed.
Until drained(const ClosingPtr& closing) {
  return Until([closing](Done done) {
    auto all = std::make_shared<Countdown>([closing, done = std::move(done)]() mutable {
      closing->reactors->post(kHere, std::move(done));
    });
    std::vector<std::shared_ptr<AttachedNexus>> nexuses;
    {
      const std::lock_guard lock(closing->unit->mutex());
      nexuses = closing->unit->attached().living_locked();
    }
    for (auto& nexus : nexuses) {
      all->begin();
      const unsigned reactor = nexus->reactor_context().reactor;
      closing->reactors->post(reactor, [nexus = std::move(nexus), all] {
        if (!nexus->drain_started([all] { all->through(); })) all->through();
      });
    }
    all->through();
  });
}

// All blocks of the unit, held exclusively.
struct AllBlocks {
  RangeHold hold;
  Done granted;
};

Until held(const ClosingPtr& closing, AllBlocks& blocks) {
  return Until([closing, &blocks](Done done) {
    Unit& unit = *closing->unit;
    blocks.granted = std::move(done);
    RangeHold& hold = blocks.hold;
    hold.first = 0;
    hold.last = std::max<uint64_t>(unit.blocks(), 1) - 1;
    hold.exclusive = true;
    hold.context = &blocks;
    hold.on_grant = [](RangeHold& granted) {
      std::exchange(static_cast<AllBlocks*>(granted.context)->granted, nullptr)();
    };
    if (unit.ranges().acquire(kHere, hold, closing->reactors)) hold.on_grant(hold);
  });
}

struct Flush {
  backend::Io io;
  Done done;
};

// Of a reactor that has a nexus of the unit. Without one, nothing was written.
ReactorContext reactor_of_a_nexus(const Closing& closing) {
  const std::lock_guard lock(closing.unit->mutex());
  return closing.unit->attached().any_reactor_context_locked();
}

// Flush::io has completed.
Until flushed(const ClosingPtr& closing, const ReactorContext& context, Flush& flush) {
  return Until([closing, context, &flush](Done done) {
    flush.done = [closing, done = std::move(done)]() mutable {
      closing->reactors->post(kHere, std::move(done));
    };
    flush.io.op = backend::Op::kFlush;
    flush.io.context = &flush;
    flush.io.done = [](backend::Io& io) {
      std::exchange(static_cast<Flush*>(io.context)->done, nullptr)();
    };
    closing->reactors->post(context.reactor, [closing, &flush, aio = context.aio] {
      if (closing->unit->backend().submit(flush.io, *aio)) flush.io.done(flush.io);
    });
  });
}

// The unit has its stand-in again. Nothing of the unit is in flight.
std::shared_ptr<backend::Backend> detach(const Closing& closing, AllBlocks& blocks) {
  Unit& unit = *closing.unit;
  std::shared_ptr<backend::Backend> backend;
  {
    const std::lock_guard lock(unit.mutex());
    backend = unit.detach_locked();
    unit.lower_gate(Unit::kDraining);
  }
  // From now on blocks change without this gateway's knowledge, so all tokens become invalid.
  unit.changes().changing(0, UINT64_MAX, INT64_MAX);
  unit.ranges().release(kHere, blocks.hold, closing.reactors);
  unit.attached().on_every(*closing.reactors, [](AttachedNexus& nexus) { nexus.forget_backend(); });
  return backend;
}

// Its last reference may go before the close ends.
Until closed(const ClosingPtr& closing, std::shared_ptr<backend::Backend> backend) {
  return Until([closing, backend = std::move(backend)](Done done) {
    backend->close([closing, done = std::move(done)]() mutable {
      closing->reactors->post(kHere, std::move(done));
    });
  });
}

// Only from now on can another gateway own the volume (DESIGN R2).
void end(const ClosingPtr& closing, bool flushed) {
  std::vector<std::function<void(bool)>> done;
  bool was_fenced = false;
  {
    const std::lock_guard lock(closing->unit->mutex());
    closing->unit->end_closing_locked();
    done = std::move(closing->done);
    was_fenced = closing->fenced;
  }
  const bool kept = flushed && !was_fenced;
  const auto all = [done = std::move(done), kept] {
    for (const auto& d : done) d(kept);
  };
  if (kept || was_fenced) return all();
  drop_nexuses(closing, "its volume was taken away from this gateway", all);
}

Sequence close(ClosingPtr closing) {
  co_await drained(closing);
  AllBlocks blocks;
  co_await held(closing, blocks);
  bool is_flushed = !fenced(*closing);
  if (const ReactorContext context = reactor_of_a_nexus(*closing); is_flushed && context.reactors) {
    Flush flush;
    co_await flushed(closing, context, flush);
    if (flush.io.result < 0) {
      is_flushed = false;
      log::error("flush failed while a volume was given up",
                 {{"unit", closing->unit->uuid_text()}, {"errno", -flush.io.result}});
    }
  }
  co_await closed(closing, detach(*closing, blocks));
  end(closing, is_flushed);
}

// Closes the gate. Null: there is no backend, or it is already being closed (*under_way).
ClosingPtr begin_closing(Unit& unit, Reactors& reactors, bool fenced,
                         std::function<void(bool)> done, ClosingPtr* under_way) {
  const std::lock_guard lock(unit.mutex());
  if (const ClosingPtr present = unit.closing_locked()) {
    present->fenced = present->fenced || fenced;
    present->done.push_back(std::move(done));
    // From now on, started commands end as aborted.
    if (fenced) unit.lower_gate(Unit::kDraining);
    *under_way = present;
    return nullptr;
  }
  if (unit.backend_state_locked() == BackendState::kAbsent) {
    reactors.post(kHere, [done = std::move(done)] { done(true); });
    return nullptr;
  }
  auto closing = std::make_shared<Closing>();
  closing->unit = unit.shared_from_this();
  closing->reactors = &reactors;
  closing->fenced = fenced;
  closing->done.push_back(std::move(done));
  unit.begin_closing_locked(closing, !fenced);
  return closing;
}

}  // namespace

void release(Unit& unit, Reactors& reactors, std::function<void(bool flushed)> done) {
  ClosingPtr under_way;
  const ClosingPtr closing = begin_closing(unit, reactors, false, std::move(done), &under_way);
  if (closing) close(closing);
}

void fence(Unit& unit, Reactors& reactors, std::function<void()> done) {
  ClosingPtr under_way;
  const ClosingPtr closing =
      begin_closing(unit, reactors, true, [done = std::move(done)](bool) { done(); }, &under_way);
  const ClosingPtr affected = closing ? closing : under_way;
  if (!affected) return;
  drop_nexuses(affected, "its volume has another owner (fenced)", [] {});
  if (closing) close(closing);
}

}  // namespace sluice::lun
