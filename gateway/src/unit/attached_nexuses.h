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

  // Pending are `first`, and what was raised after `since` (AttentionLog::now()).
  void attach(AttachedNexus& nexus, const std::vector<UnitAttention>& first, uint64_t since);
  void detach(AttachedNexus* nexus);
  // Those that `which` accepts (empty: all). The caller passes each reference on to a task of the
  // nexus's reactor: a last reference may end nowhere else.
  std::vector<std::shared_ptr<AttachedNexus>> living_locked(
      const std::function<bool(const AttachedNexus&)>& which = {}) const;
  // A context whose Aio can carry a flush, once a nexus was attached; `reactors` null: none was.
  ReactorContext any_reactor_context_locked() const { return context_; }
  // Runs `what` for each nexus that is attached now, posted to its reactor.
  void on_every(Reactors& reactors, const std::function<void(AttachedNexus&)>& what) const;

  // Queues `ua` for every nexus but `except` (may be null), including those that attach later
  // (unit/attention_log.h).
  void raise(UnitAttention ua, const AttachedNexus* except);
  void raise_locked(UnitAttention ua, const AttachedNexus* except);
  // The same for a condition that only the owner knows of, at the time `now` (ReactorContext::now):
  // the owner reports it to the hosts of the gateways that forward, too, from when they logged in
  // there on.
  void raise_owners(UnitAttention ua, const AttachedNexus* except, Nanos now);
  void raise_owners_locked(UnitAttention ua, const AttachedNexus* except, Nanos now);
  void raise_for(AttachedNexus& nexus, UnitAttention ua);
  // For every nexus but `by` that one of the registrations covers. `by` is attached.
  void raise_for_locked(const std::vector<Registration>& whom, const NexusId& by, UnitAttention ua);
  // Takes the oldest pending attention; false: there is none.
  bool pop(AttachedNexus& nexus, UnitAttention* out);
  void clear(AttachedNexus& nexus, UnitAttention ua);  // if pending

 private:
  std::mutex& mutex_;
  std::vector<AttachedNexus*> nexuses_;
  ReactorContext context_;  // of the last one that was attached
  const std::unique_ptr<AttentionLog> log_;
};

}  // namespace sluice::lun
