#include "desired/exporter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/limits.h"
#include "nexus/host_directory.h"

namespace sluice::desired {
namespace {

void add_reason(const std::string& reason, std::string* all) {
  if (!all->empty()) *all += "; ";
  *all += reason;
}

std::vector<LunName> names_of(const std::string& iqn, const LunEntries& luns) {
  std::vector<LunName> names;
  for (const lun::Target::LunEntry& entry : luns) names.push_back({iqn, entry.lun});
  return names;
}

void append(std::vector<LunName> names, std::vector<LunName>* all) {
  std::ranges::move(names, std::back_inserter(*all));
}

}  // namespace

Outcome Exporter::apply(Update update) {
  Outcome outcome;
  const std::vector<std::string> removed = targets_to_remove(update);
  std::vector<Plan> plans;
  for (Target& target : update.put) plans.push_back(plan(std::move(target), &outcome));

  if (update.discovery) {
    setup_.exports.set_discovery_policy(update.discovery->policy);
    outcome.discovery_changed =
        setup_.exports.set_discovery_access(std::move(update.discovery->access));
  }
  for (const std::string& iqn : removed) remove(iqn, &outcome);
  for (Plan& plan : plans) change_access(plan, &outcome);
  const bool hosts_differ = !removed.empty() || !outcome.access_changed.empty() ||
                            std::ranges::any_of(plans, &Plan::added);
  if (hosts_differ || setup_.exports.hosts() == nullptr) update_directory(plans);
  withdraw_moved_units(plans);

  for (Plan& plan : plans) show(plan, &outcome);
  return outcome;
}

std::vector<std::string> Exporter::targets_to_remove(const Update& update) const {
  std::vector<std::string> removed = update.removed;
  if (!update.complete) return removed;
  std::set<std::string_view> put;
  for (const Target& target : update.put) put.insert(target.iqn);
  for (const auto& target : setup_.exports.all()) {
    if (!put.contains(target->iqn())) removed.push_back(target->iqn());
  }
  return removed;
}

Exporter::Plan Exporter::plan(Target desired, Outcome* outcome) {
  Plan plan;
  std::string problem;
  plan.next = luns_of(desired, &problem);
  for (const std::string& reason : desired.omitted) add_reason(reason, &problem);
  if (!problem.empty()) outcome->refused[desired.iqn] = std::move(problem);
  plan.target = setup_.exports.find(desired.iqn);
  plan.added = plan.target == nullptr;
  if (plan.added) {
    plan.target = std::make_shared<lun::Target>(desired.iqn, desired.alias, desired.group);
  }
  plan.now = plan.target->luns();
  plan.changes = difference(plan.now, plan.next);
  plan.desired = std::move(desired);
  return plan;
}

LunEntries Exporter::luns_of(const Target& desired, std::string* problem) {
  LunEntries luns;
  for (const Lun& lun : desired.luns) {
    Result<std::shared_ptr<lun::Unit>> unit = Error{"numbers are 0 to 16383"};
    if (lun.number <= limits::kMaxLunNumber) unit = setup_.units.unit_for(desired.iqn, lun);
    if (unit) {
      luns.push_back({lun.number, std::move(unit).value(), lun.read_only});
    } else {
      add_reason("LUN " + std::to_string(lun.number) + ": " + unit.error(), problem);
    }
  }
  std::ranges::sort(luns, {}, &lun::Target::LunEntry::lun);
  return luns;
}

void Exporter::remove(const std::string& iqn, Outcome* outcome) {
  setup_.units.shown(iqn, {});
  const auto target = setup_.exports.find(iqn);
  if (target == nullptr) return;
  append(names_of(iqn, target->luns()), &outcome->luns_removed);
  outcome->removed.push_back(iqn);
  setup_.exports.remove(iqn, setup_.reactors);
  setup_.review(iqn);
}

// No session of a target that is added exists yet.
void Exporter::change_access(Plan& plan, Outcome* outcome) {
  const bool changed = plan.target->set_hosts(std::move(plan.desired.access));
  if (!changed || plan.added) return;
  outcome->access_changed.push_back(plan.desired.iqn);
  setup_.review(plan.desired.iqn);
}

// If targets differ in what they require of an initiator, the order of their names decides.
void Exporter::update_directory(const std::vector<Plan>& plans) {
  std::vector<std::shared_ptr<lun::Target>> targets = setup_.exports.all();
  for (const Plan& plan : plans) {
    if (plan.added) targets.push_back(plan.target);
  }
  std::ranges::sort(targets, {}, &lun::Target::iqn);
  auto hosts = std::make_shared<lun::HostDirectory>();
  for (const auto& target : targets) {
    target->visit_hosts([&](const lun::HostAccess& host) { hosts->add(host); });
  }
  setup_.exports.set_hosts(std::move(hosts));
}

// A unit that moves from one target to another leaves the hosts of the first before those of the
// second see it. All other changes of a LUN map take one step, so that a number that gets another
// unit is never absent.
void Exporter::withdraw_moved_units(const std::vector<Plan>& plans) {
  std::multimap<const lun::Unit*, const Plan*> gains;
  for (const Plan& plan : plans) {
    for (const auto& entry : plan.changes.added) gains.emplace(entry.unit.get(), &plan);
  }
  for (const Plan& plan : plans) {
    const auto gained_elsewhere = [&](const lun::Unit& unit) {
      const auto [first, last] = gains.equal_range(&unit);
      return std::any_of(first, last, [&](const auto& gain) { return gain.second != &plan; });
    };
    LunEntries left = without_lost(plan.now, plan.next, gained_elsewhere);
    if (left != plan.now) plan.target->set_luns(std::move(left), setup_.reactors);
  }
}

void Exporter::show(Plan& plan, Outcome* outcome) {
  const std::string& iqn = plan.desired.iqn;
  append(names_of(iqn, plan.changes.added), &outcome->luns_added);
  append(names_of(iqn, plan.changes.removed), &outcome->luns_removed);
  plan.target->set_relative_ports(std::move(plan.desired.relative_ports));
  plan.target->set_ports(std::move(plan.desired.ports));
  setup_.units.shown(iqn, plan.next);
  plan.target->set_luns(std::move(plan.next), setup_.reactors);
  if (!plan.added) return;
  outcome->added.push_back(iqn);
  setup_.exports.add(std::move(plan.target));
}

void Exporter::show_portals(const std::vector<Portal>& portals) {
  std::vector<lun::PortalInfo> infos;
  infos.reserve(portals.size());
  for (const Portal& portal : portals) {
    infos.push_back({.address = portal.advertised.empty() ? portal.bound : portal.advertised,
                     .tpgt = portal.tpgt,
                     .relative_port = portal.tpgt});
  }
  setup_.exports.set_portals(std::move(infos));
}

}  // namespace sluice::desired
