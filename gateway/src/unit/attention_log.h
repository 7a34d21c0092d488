// The unit attentions that were raised on a unit, for nexuses that come to it later than their
// session began: the first command finds them as if the nexus had been there all the time
// (SAM-5 §5.14). Told to whom they concern; told to all where that would be too much to keep.
//
// Threads: with the unit's mutex held, but for now() and next().
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
  // Of one clock for all units of the process, so that one number says when a session began.
  using Moment = uint64_t;
  static Moment now();
  static Moment next();  // later than every now() before

  // Every gateway that shows the unit raises it by itself, for its own hosts.
  void add(UnitAttention ua) { add({.at = next(), .what = ua}); }
  // Only this one knows of it, which owns the unit; at the time `now` (ReactorContext::now). `by`,
  // who may be null, caused it and isn't told.
  void add_here(UnitAttention ua, Nanos now, const NexusId* by);
  void add(UnitAttention ua, const std::vector<Registration>& whom);

  // What `id` is to be told that was raised after `since`, oldest first.
  std::vector<UnitAttention> raised_after(Moment since, const NexusId& id) const;

  // The same for a nexus that is forwarded. Its host may have been there for long (`host_since`, as
  // Nexus::host_since()) when its first command opened the session `since` which it is here: it is
  // told, too, what only this gateway knows of and raised since then, and what concerned it by name
  // at any time, where it was not told() yet; and what all are told because the names were too
  // many.
  std::vector<UnitAttention> raised_for_forwarded(Moment since, Nanos host_since,
                                                  const NexusId& id) const;
  // A forwarded nexus has been.
  void told(UnitAttention ua, const NexusId& id);

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Moment at = 0;
    UnitAttention what;
    std::optional<Registration> who = {};  // nullopt: everybody
    std::optional<Nanos> here = {};        // only this gateway knows of it, since then
    bool names_lost = false;               // everybody, as there were too many
    std::vector<NexusId> told = {};        // forwarded ones; beyond the bound they are told again
    bool was_told(const NexusId& id) const;
    bool concerns_forwarded(Moment since, Nanos host_since, const NexusId& id) const;
    void note(const NexusId& id);
  };
  void add(Entry entry);
  void tell_all(UnitAttention ua);

  std::vector<Entry> entries_;  // oldest first; one for each `what` and `who`
};

}  // namespace sluice::lun
