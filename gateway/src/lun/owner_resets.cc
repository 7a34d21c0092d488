#include "lun/owner_resets.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "lun/countdown.h"
#include "lun/exports.h"
#include "lun/forwarding.h"
#include "lun/nexus.h"
#include "lun/placing.h"
#include "lun/unit.h"
#include "lun/write_cache.h"
#include "scsi/report_luns.h"

namespace sluice::lun {
namespace {

constexpr UnitAttention kDeviceReset{0x29, 0x03};  // BUS DEVICE RESET FUNCTION OCCURRED

}  // namespace

void reset_here(Nexus& nexus, const std::shared_ptr<Unit>& unit, std::function<void()> done) {
  const Lane& lane = nexus.lane();
  auto all = std::make_shared<Countdown>(std::move(done));
  all->begin();
  unit->abort_everywhere(*lane.reactors, lane.reactor, &nexus, false, nullptr,
                         [unit, all] { all->through(); });
  unit->reset_state(kDeviceReset, *lane.now);
  reset_cache(*unit, lane, [all] { all->through(); });
}

void OwnerResets::add(const MappedLun& lun, std::function<void(bool)> done) {
  if (count_ >= limits::kMaxFollowingResets) return done(false);
  auto reset = std::make_shared<Reset>();
  reset->unit = lun.unit;
  reset->lun_field = scsi::lun_field(lun.lun);
  reset->done = std::move(done);
  reset->since = *nexus_.lane().now;
  // By whatever LUN: it is one task set to the host.
  nexus_.use_luns_of(*lun.unit);
  for (Itl* itl : nexus_.itls()) {
    if (&itl->unit() != lun.unit.get()) continue;
    ++itl->resets;
    ++itl->held;
    ++nexus_.held;
    reset->behind.push_back(itl->shared_from_this());
  }
  resets_[lun.unit.get()].push_back(reset);
  ++count_;
  try_one(reset);
}

void OwnerResets::look(const Unit& unit) {
  const auto found = resets_.find(&unit);
  if (found == resets_.end()) return;
  const std::vector<ResetPtr> these = found->second;
  for (const ResetPtr& reset : these) try_one(reset);
}

void OwnerResets::tick() {
  std::vector<ResetPtr> all;
  for (const auto& [unit, these] : resets_) all.insert(all.end(), these.begin(), these.end());
  for (const ResetPtr& reset : all) try_one(reset);
}

void OwnerResets::clear() {
  count_ = 0;
  for (const auto& [unit, these] : std::exchange(resets_, {})) {
    for (const ResetPtr& reset : these) let_go(*reset);
  }
}

void OwnerResets::try_one(const ResetPtr& reset) {
  if (reset->asked || !reset->done) return;
  const Role role = reset->unit->role();
  if (role.standing == Standing::kOwner) {
    // By now it is done as a direct one is: what comes later need not wait for it to end.
    reset_here(nexus_, reset->unit, [done = std::exchange(reset->done, nullptr)] { done(true); });
    return end(reset);
  }
  const bool late = *nexus_.lane().now - reset->since >= limits::kResetFollows;
  if (late || role.standing == Standing::kUnavailable) {
    log::warning("a logical unit reset is refused: no gateway carried it out",
                 {{"unit", reset->unit->uuid_text()},
                  {"initiator", nexus_.id().initiator_name},
                  {"reason", late ? "nobody owned the volume in time" : "it is unavailable"}});
    std::exchange(reset->done, nullptr)(false);
    return end(reset);
  }
  if (role.standing == Standing::kForwarder) ask(reset, role);
}

void OwnerResets::ask(const ResetPtr& reset, const Role& role) {
  const std::shared_ptr<Link> link = nexus_.link_to(role.owner);
  if (!link) return;
  reset->asked = true;
  reset->asked_of = role;
  // Weak: the link is the nexus's, and may outlive its interest in the answer.
  link->function(LinkFunction::kLogicalUnitReset, reset->lun_field,
                 [nexus = nexus_.weak_from_this(), waiting = std::weak_ptr(reset)](bool done) {
                   const std::shared_ptr<Nexus> alive = nexus.lock();
                   const ResetPtr asked = waiting.lock();
                   if (alive && asked) alive->owner_resets().answered(asked, done);
                 });
}

void OwnerResets::answered(const ResetPtr& reset, bool done) {
  reset->asked = false;
  if (!reset->done) return;
  if (done) {
    std::exchange(reset->done, nullptr)(true);
    return end(reset);
  }
  // The same one is asked again at the next tick, not as fast as it can refuse.
  if (reset->unit->role() != reset->asked_of) try_one(reset);
}

void OwnerResets::end(const ResetPtr& reset) {
  const auto found = resets_.find(reset->unit.get());
  if (found == resets_.end() || std::erase(found->second, reset) == 0) return;
  if (found->second.empty()) resets_.erase(found);
  --count_;
  const auto behind = reset->behind;
  let_go(*reset);
  for (const std::shared_ptr<Itl>& itl : behind) {
    if (itl->resets == 0) resume(*itl);
  }
}

void OwnerResets::let_go(Reset& reset) {
  for (const std::shared_ptr<Itl>& itl : reset.behind) {
    --itl->resets;
    --itl->held;
    --nexus_.held;
  }
  reset.behind.clear();
  reset.done = nullptr;
}

}  // namespace sluice::lun
