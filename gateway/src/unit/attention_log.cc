#include "unit/attention_log.h"

#include <algorithm>
#include <atomic>

#include "base/limits.h"

namespace sluice::lun {
namespace {

std::atomic<AttentionLog::Moment> clock{1};

// Compares nexuses only, not keys: attentions are for nexuses.
bool same_nexuses(const std::optional<Registration>& a, const std::optional<Registration>& b) {
  if (!a || !b) return !a && !b;
  return a->nexus == b->nexus && a->all_target_ports == b->all_target_ports &&
         a->except_ports == b->except_ports;
}

}  // namespace

AttentionLog::Moment AttentionLog::now() { return clock.load(std::memory_order_acquire); }
AttentionLog::Moment AttentionLog::next() {
  return clock.fetch_add(1, std::memory_order_acq_rel) + 1;
}

void AttentionLog::add(UnitAttention ua, const std::vector<Registration>& whom) {
  if (whom.size() > limits::kMaxNamedAttentions) return raise_for_all(ua);
  for (const Registration& who : whom) add({.at = next(), .what = ua, .who = who});
}

void AttentionLog::add_here(UnitAttention ua, Nanos now, const NexusId* by) {
  Entry entry{.at = next(), .what = ua, .here = now};
  if (by) entry.note(*by);
  add(std::move(entry));
}

void AttentionLog::add(Entry entry) {
  std::erase_if(entries_, [&entry](const Entry& e) {
    return e.what == entry.what && e.here.has_value() == entry.here.has_value() &&
           same_nexuses(e.who, entry.who);
  });
  const auto named = std::count_if(entries_.begin(), entries_.end(),
                                   [](const Entry& e) { return e.who.has_value(); });
  if (entry.who && named >= limits::kMaxNamedAttentions) return raise_for_all(entry.what);
  entries_.push_back(std::move(entry));
}

void AttentionLog::raise_for_all(UnitAttention ua) {
  std::erase_if(entries_, [ua](const Entry& e) { return e.what == ua; });
  entries_.push_back({.at = next(), .what = ua, .names_lost = true});
}

std::vector<UnitAttention> AttentionLog::raised_after(Moment since, const NexusId& id) const {
  std::vector<UnitAttention> raised;
  for (const Entry& e : entries_) {
    if (e.at > since && (!e.who || e.who->covers(id))) raised.push_back(e.what);
  }
  return raised;
}

std::vector<UnitAttention> AttentionLog::raised_for_forwarded(Moment since, Nanos host_since,
                                                              const NexusId& id) const {
  std::vector<UnitAttention> raised;
  for (const Entry& e : entries_) {
    if (e.concerns_forwarded(since, host_since, id)) raised.push_back(e.what);
  }
  return raised;
}

void AttentionLog::record_reported(UnitAttention ua, const NexusId& id) {
  for (Entry& e : entries_) {
    if (e.what == ua && (e.here || (e.who && e.who->covers(id)))) e.note(id);
  }
}

void AttentionLog::Entry::note(const NexusId& id) {
  if (!was_reported_to(id) && reported_to.size() < limits::kMaxNotifiedNexuses)
    reported_to.push_back(id);
}

bool AttentionLog::Entry::was_reported_to(const NexusId& id) const {
  return std::ranges::find(reported_to, id) != reported_to.end();
}

bool AttentionLog::Entry::concerns_forwarded(Moment since, Nanos host_since,
                                             const NexusId& id) const {
  if (who) return who->covers(id) && !was_reported_to(id);
  if (here) return *here >= host_since && !was_reported_to(id);
  return names_lost || at > since;
}

}  // namespace sluice::lun
