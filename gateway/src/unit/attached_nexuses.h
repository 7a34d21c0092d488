// The I_T_L nexuses of one unit, and the unit attentions that are raised on them (SAM-5 §5.14,
// DESIGN R10: at least once, at most one pending per nexus and condition).
//
// Threads: any. The unit's mutex guards everything here. Functions that end in _locked expect that
// the caller holds it; the others take it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "unit/attached_nexus.h"

namespace sluice::lun {

class AttentionLog;
struct Registration;

class AttachedNexuses {
 public:
  explicit AttachedNexuses(std::mutex& mutex);
  ~AttachedNexuses();
  AttachedNexuses(const AttachedNexuses&) = delete;
  AttachedNexuses& operator=(const AttachedNexuses&) = delete;

  // `first`, and what was raised after `since` (AttentionLog::now()), are pending for it.
  void attach(AttachedNexus& nexus, const std::vector<UnitAttention>& first, uint64_t since);
  void detach(AttachedNexus* nexus);
  // The nexuses that `which` accepts (empty: all). The caller must move each reference into a task
  // of the nexus's reactor, because the last reference may be destroyed only there.
  std::vector<std::shared_ptr<AttachedNexus>> living_locked(
      const std::function<bool(const AttachedNexus&)>& which = {}) const;
  // A context whose Aio can execute a flush; its `reactors` is null if no nexus was ever attached.
  ReactorContext any_reactor_context_locked() const { return context_; }
  // Runs `what` for each nexus that is attached now, posted to its reactor.
  void on_every(Reactors& reactors, const std::function<void(AttachedNexus&)>& what) const;

  // Queues `ua` for every nexus except `except` (may be null), including those that attach later
  // (unit/attention_log.h).
  void raise(UnitAttention ua, const AttachedNexus* except);
  void raise_locked(UnitAttention ua, const AttachedNexus* except);
  // As raise(), for a condition that only the owner knows, at the time `now` (ReactorContext::now).
  // The owner also reports it to hosts of gateways that forward, if they were logged in there at
  // that time.
  void raise_owners(UnitAttention ua, const AttachedNexus* except, Nanos now);
  void raise_owners_locked(UnitAttention ua, const AttachedNexus* except, Nanos now);
  void raise_for(AttachedNexus& nexus, UnitAttention ua);
  // For every nexus except `by` that one of the registrations covers. `by` is attached.
  void raise_for_locked(const std::vector<Registration>& whom, const NexusId& by, UnitAttention ua);
  // Removes and returns the oldest pending attention; false: none.
  bool pop(AttachedNexus& nexus, UnitAttention* out);
  void clear(AttachedNexus& nexus, UnitAttention ua);  // if it is pending

 private:
  std::mutex& mutex_;
  std::vector<AttachedNexus*> nexuses_;
  ReactorContext context_;  // of the nexus that was attached last
  const std::unique_ptr<AttentionLog> log_;
};

}  // namespace sluice::lun
