#include "control/desired_target.h"

#include <string>
#include <utility>
#include <vector>

#include "control/host_access.h"

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

Result<lun::HostAccess> access_of(const wire::DesiredAccess& access, const Snapshot& now) {
  const wire::DesiredHost* host = now.host(access.host_uid());
  if (host == nullptr) return Error{"it is not known here"};
  return host_access(*host, access);
}

}  // namespace

Result<desired::Target> desired_target(const wire::DesiredTarget& from, const Snapshot& now) {
  const wire::DesiredSettings* settings = now.settings();
  if (settings == nullptr || settings->number() == 0) {
    return Error{"this gateway's number has not come yet"};
  }
  desired::Target target;
  target.iqn = from.iqn();
  target.group = static_cast<uint16_t>(settings->number());
  target.ports = ports_of(from);
  for (const wire::DesiredAccess& access : from.access()) {
    Result<lun::HostAccess> entry = access_of(access, now);
    if (entry) {
      target.access.push_back(std::move(entry).value());
    } else {
      target.omitted.push_back("host " + access.host_uid() + ": " + entry.error());
    }
  }
  for (const wire::DesiredLun& lun : from.luns()) {
    target.luns.push_back(
        {.number = lun.id(), .volume = lun.volume_uid(), .read_only = lun.read_only()});
  }
  return target;
}

}  // namespace sluice::control
