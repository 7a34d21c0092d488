#include "nexus/owner_resets.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "nexus/forwarding.h"
#include "nexus/itl.h"
#include "nexus/owner_links.h"
#include "nexus/pipeline.h"
#include "scsi/report_luns.h"
#include "unit/abort_everywhere.h"
#include "unit/countdown.h"
#include "unit/unit.h"
#include "unit/write_cache.h"

namespace sluice::lun {
namespace {

constexpr UnitAttention kDeviceReset{0x29, 0x03};  // BUS DEVICE RESET FUNCTION OCCURRED

}  // namespace

void reset_here(NexusContext& nexus, const std::shared_ptr<Unit>& unit,
                std::function<void()> done) {
  const ReactorContext& context = nexus.reactor_context();
  auto all = std::make_shared<Countdown>(std::move(done));
  all->begin();
  abort_everywhere(*unit, *context.reactors, context.reactor,
                   {.by = &nexus.id(), .until_released = false}, [unit, all] { all->through(); });
  unit->reset_state(kDeviceReset, *context.now);
  reset_cache(*unit, context, [all] { all->through(); });
}

void OwnerResets::add(const std::shared_ptr<Unit>& unit, uint64_t lun,
                      std::vector<std::shared_ptr<Itl>> behind, std::function<void(bool)> done) {
  if (full()) return done(false);
  auto reset = std::make_shared<Reset>();
  reset->unit = unit;
  reset->lun_field = scsi::lun_field(lun);
  reset->done = std::move(done);
  reset->since = *nexus_.reactor_context().now;
  reset->behind = std::move(behind);
  for (const std::shared_ptr<Itl>& itl : reset->behind) {
    ++itl->resets;
    ++itl->held;
    ++nexus_.held;
  }
  resets_[unit.get()].push_back(reset);
  ++count_;
  try_one(reset);
}

bool OwnerResets::full() const { return count_ >= limits::kMaxFollowingResets; }

void OwnerResets::on_role_change(const Unit& unit) {
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
    for (const ResetPtr& reset : these) release_waiting(*reset);
  }
}

void OwnerResets::try_one(const ResetPtr& reset) {
  if (reset->asked || !reset->done) return;
  const Role role = reset->unit->role();
  if (role.standing == Standing::kOwner) {
    // The reset is performed as a direct one, so later commands need not wait for its end.
    reset_here(nexus_, reset->unit, [done = std::exchange(reset->done, nullptr)] { done(true); });
    return end(reset);
  }
  const bool late = *nexus_.reactor_context().now - reset->since >= limits::kResetFollows;
  if (late || is_unavailable(role.standing)) {
    log::warning("a logical unit reset is refused: no gateway carried it out",
                 {{"unit", reset->unit->uuid_text()},
                  {"initiator", nexus_.id().initiator_name},
                  {"reason", late ? "the volume had no owner in time" : "it is unavailable"}});
    std::exchange(reset->done, nullptr)(false);
    return end(reset);
  }
  if (role.standing == Standing::kForwarder) ask(reset, role);
}

void OwnerResets::ask(const ResetPtr& reset, const Role& role) {
  if (reset->behind.empty()) return;  // the nexus is closed
  const std::shared_ptr<Nexus> nexus = reset->behind.front()->shared_nexus();
  const std::shared_ptr<Link> link = links_.link_to(role.owner, nexus);
  if (!link) return;
  reset->asked = true;
  reset->asked_of = role;
  // Weak references: the link belongs to the nexus and may answer after the reset is dropped. This
  // object lives as long as the nexus.
  link->function(LinkFunction::kLogicalUnitReset, reset->lun_field,
                 [this, owner = std::weak_ptr(nexus), waiting = std::weak_ptr(reset)](bool done) {
                   const std::shared_ptr<Nexus> alive = owner.lock();
                   const ResetPtr asked = waiting.lock();
                   if (alive && asked) answered(asked, done);
                 });
}

void OwnerResets::answered(const ResetPtr& reset, bool done) {
  reset->asked = false;
  if (!reset->done) return;
  if (done) {
    std::exchange(reset->done, nullptr)(true);
    return end(reset);
  }
  // The same gateway is asked again at the next tick, to limit the rate of refusals.
  if (reset->unit->role() != reset->asked_of) try_one(reset);
}

void OwnerResets::end(const ResetPtr& reset) {
  const auto found = resets_.find(reset->unit.get());
  if (found == resets_.end() || std::erase(found->second, reset) == 0) return;
  if (found->second.empty()) resets_.erase(found);
  --count_;
  const auto behind = reset->behind;
  release_waiting(*reset);
  for (const std::shared_ptr<Itl>& itl : behind) {
    if (itl->resets == 0) resume(*itl);
  }
}

void OwnerResets::release_waiting(Reset& reset) {
  for (const std::shared_ptr<Itl>& itl : reset.behind) {
    --itl->resets;
    --itl->held;
    --nexus_.held;
  }
  reset.behind.clear();
  reset.done = nullptr;
}

}  // namespace sluice::lun
