// The unit attentions that were raised on a unit. A nexus uses the unit for the first time later
// than its session began; its first command must see them as if it had been attached since then
// (SAM-5 §5.14). An entry names the nexuses it concerns; if there are too many entries, it concerns
// all.
//
// Threads: the caller holds the unit's mutex, except for now() and next().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "unit/attention.h"
#include "unit/reservations/reservations.h"

namespace sluice::lun {

class AttentionLog {
 public:
  // The value of a counter that all units of the process share; it orders attentions and the begin
  // of sessions.
  using Moment = uint64_t;
  static Moment now();
  static Moment next();  // greater than every earlier now()

  // For a condition that every gateway which exports the unit raises itself, for its own hosts.
  void add(UnitAttention ua) { add({.at = next(), .what = ua}); }
  // For a condition that only this gateway, the owner, knows; raised at `now`
  // (ReactorContext::now). `by` (may be null) caused it and gets no unit attention.
  void add_here(UnitAttention ua, Nanos now, const NexusId* by);
  void add(UnitAttention ua, const std::vector<Registration>& whom);

  // The attentions for `id` that were raised after `since`, oldest first.
  std::vector<UnitAttention> raised_after(Moment since, const NexusId& id) const;

  // The same for a forwarded nexus. Its session here began at `since`, when its first command
  // arrived; the host's own session (`host_since`, see Nexus::host_since()) may be older. It also
  // gets the attentions that only this gateway knows, raised since `host_since`; those that name
  // it, raised at any time; and those whose names were dropped. Attentions that were already
  // reported to it are omitted, except the last kind.
  std::vector<UnitAttention> raised_for_forwarded(Moment since, Nanos host_since,
                                                  const NexusId& id) const;
  // `ua` was reported to the forwarded nexus `id`.
  void record_reported(UnitAttention ua, const NexusId& id);

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Moment at = 0;
    UnitAttention what;
    std::optional<Registration> who = {};  // nullopt: all nexuses
    // only this gateway knows it; the time when it was raised
    std::optional<Nanos> here = {};
    bool names_lost = false;  // for all nexuses, because there were too many names
    // forwarded nexuses that got it; beyond the limit they get it again
    std::vector<NexusId> reported_to = {};
    bool was_reported_to(const NexusId& id) const;
    bool concerns_forwarded(Moment since, Nanos host_since, const NexusId& id) const;
    void note(const NexusId& id);
  };
  void add(Entry entry);
  void raise_for_all(UnitAttention ua);

  std::vector<Entry> entries_;  // oldest first; one entry for each `what` and `who`
};

}  // namespace sluice::lun
