#include "lun/attention_log.h"

#include <algorithm>
#include <atomic>

#include "base/limits.h"

namespace sluice::lun {
namespace {

std::atomic<AttentionLog::Moment> clock{1};

// Whatever key it had: it is the nexuses that are told.
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
  if (whom.size() > limits::kMaxNamedAttentions) return tell_all(ua);
  for (const Registration& who : whom) add({next(), ua, who, false, {}});
}

void AttentionLog::add(Entry entry) {
  std::erase_if(entries_, [&entry](const Entry& e) {
    return e.what == entry.what && same_nexuses(e.who, entry.who);
  });
  const auto named = std::count_if(entries_.begin(), entries_.end(),
                                   [](const Entry& e) { return e.who.has_value(); });
  if (entry.who && named >= limits::kMaxNamedAttentions) return tell_all(entry.what);
  entries_.push_back(std::move(entry));
}

void AttentionLog::tell_all(UnitAttention ua) {
  std::erase_if(entries_, [ua](const Entry& e) { return e.what == ua; });
  entries_.push_back({next(), ua, std::nullopt, true, {}});
}

std::vector<UnitAttention> AttentionLog::raised_after(Moment since, const NexusId& id) const {
  std::vector<UnitAttention> raised;
  for (const Entry& e : entries_) {
    if (e.at > since && (!e.who || e.who->covers(id))) raised.push_back(e.what);
  }
  return raised;
}

std::vector<UnitAttention> AttentionLog::raised_for_forwarded(Moment since,
                                                              const NexusId& id) const {
  std::vector<UnitAttention> raised;
  for (const Entry& e : entries_) {
    const bool untold = e.who ? e.untold(id) : e.names_lost || e.at > since;
    if (untold) raised.push_back(e.what);
  }
  return raised;
}

void AttentionLog::told(UnitAttention ua, const NexusId& id) {
  for (Entry& e : entries_) {
    if (e.what == ua && e.who && e.untold(id)) e.told.push_back(id.relative_target_port);
  }
}

bool AttentionLog::Entry::untold(const NexusId& id) const {
  return who->covers(id) && std::ranges::find(told, id.relative_target_port) == told.end();
}

}  // namespace sluice::lun
