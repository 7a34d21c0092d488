#include "control/target_applier.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/limits.h"
#include "control/host_access.h"
#include "iscsi/login/chap.h"
#include "nexus/host_directory.h"

namespace sluice::control {
namespace {

std::vector<lun::TargetPort> ports_of(const wire::DesiredTarget& target) {
  std::vector<lun::TargetPort> ports;
  for (const wire::DesiredPort& port : target.ports()) {
    ports.push_back({static_cast<uint16_t>(port.gateway()),
                     static_cast<uint16_t>(port.portal_group_tag()),
                     static_cast<uint16_t>(port.relative_target_port_id())});
  }
  return ports;
}

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

LunNumbers::Luns numbers_of(const std::vector<lun::Target::LunEntry>& luns) {
  LunNumbers::Luns numbers;
  for (const lun::Target::LunEntry& entry : luns) numbers[entry.lun] = entry.unit->uuid_text();
  return numbers;
}

}  // namespace

Result<void> TargetApplier::put(const wire::DesiredTarget& desired, const Snapshot& now) {
  const wire::DesiredSettings* settings = now.settings();
  if (settings == nullptr || settings->number() == 0) {
    return Error{"this gateway's number has not come yet"};
  }
  std::string problem;
  std::vector<lun::Target::LunEntry> luns = luns_of(desired, &problem);
  std::vector<lun::HostAccess> hosts = hosts_of(desired, now, &problem);
  std::shared_ptr<lun::Target> target = setup_.exports.find(desired.iqn());
  const bool added = target == nullptr;
  if (added) {
    target = std::make_shared<lun::Target>(desired.iqn(), std::string(),
                                           static_cast<uint16_t>(settings->number()));
  }
  target->set_ports(ports_of(desired));
  target->set_hosts(std::move(hosts));
  setup_.numbers.shown(desired.iqn(), numbers_of(luns), seconds_now());
  target->set_luns(std::move(luns), setup_.reactors);
  if (added) setup_.exports.add(std::move(target));
  setup_.review(desired.iqn());
  if (!problem.empty()) return Error{problem};
  return {};
}

std::vector<lun::Target::LunEntry> TargetApplier::luns_of(const wire::DesiredTarget& target,
                                                          std::string* problem) const {
  std::vector<lun::Target::LunEntry> luns;
  for (const wire::DesiredLun& lun : target.luns()) {
    const auto complain = [&](const std::string& what) {
      *problem += (problem->empty() ? "LUN " : "; LUN ") + std::to_string(lun.id()) + ": " + what;
    };
    std::shared_ptr<lun::Unit> unit = setup_.volumes.unit_to_export(lun.volume_uid());
    const std::string held =
        setup_.numbers.held(target.iqn(), lun.id(), lun.volume_uid(), seconds_now());
    if (lun.id() > limits::kMaxLunNumber) {
      complain("numbers are 0 to 16383");
    } else if (unit == nullptr) {
      complain("there is no volume " + lun.volume_uid() + " here, or it is refused or leaving");
    } else if (!held.empty()) {
      complain(held);
    } else {
      luns.push_back({lun.id(), std::move(unit), lun.read_only()});
    }
  }
  return luns;
}

std::vector<lun::HostAccess> TargetApplier::hosts_of(const wire::DesiredTarget& target,
                                                     const Snapshot& now, std::string* problem) {
  std::vector<lun::HostAccess> hosts;
  for (const wire::DesiredAccess& access : target.access()) {
    const auto complain = [&](const std::string& what) {
      *problem += (problem->empty() ? "host " : "; host ") + access.host_uid() + ": " + what;
    };
    const wire::DesiredHost* host = now.host(access.host_uid());
    if (host == nullptr) {
      complain("it is not known here");
      continue;
    }
    Result<lun::HostAccess> entry = host_access(*host, access);
    if (!entry) {
      complain(entry.error());
      continue;
    }
    hosts.push_back(std::move(entry).value());
  }
  return hosts;
}

// A refused host counts as unknown. In discovery the gateway authenticates itself with the mutual
// CHAP credentials of the host's first target.
void TargetApplier::show_hosts(const Snapshot& now) {
  auto hosts = std::make_shared<lun::HostDirectory>();
  std::set<std::string> known;
  const Objects& all = *now.objects;
  for (auto at = all.first_of(wire::OBJECT_KIND_TARGET); at != all.end() && (*at)->has_target();
       ++at) {
    for (const wire::DesiredAccess& access : (*at)->target().access()) {
      const wire::DesiredHost* host = now.host(access.host_uid());
      if (host == nullptr || !known.insert(access.host_uid()).second) continue;
      if (Result<lun::HostAccess> entry = host_access(*host, access)) {
        hosts->add(entry.value());
        iscsi::wipe(&entry.value());
      }
    }
  }
  setup_.exports.set_hosts(std::move(hosts));
}

void TargetApplier::remove(const std::string& iqn) {
  setup_.numbers.shown(iqn, {}, seconds_now());
  setup_.exports.remove(iqn, setup_.reactors);
  setup_.review(iqn);
}

std::string TargetApplier::host_of(const std::string& iqn, const std::string& initiator) const {
  lun::HostAccess access;
  const auto target = setup_.exports.find(iqn);
  if (!target || !target->access_for(initiator, &access)) return {};
  iscsi::wipe(&access);
  return access.host;
}

}  // namespace sluice::control
