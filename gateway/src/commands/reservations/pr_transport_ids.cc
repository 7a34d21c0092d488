#include "commands/reservations/pr_transport_ids.h"

#include <algorithm>

namespace sluice::lun {
namespace {

constexpr uint16_t kSpecifiedIdsAt = 28;  // after ADDITIONAL PARAMETER LENGTH
constexpr uint16_t kRelativePortAt = 18;  // REGISTER AND MOVE
constexpr uint16_t kMoveTransportIdAt = 24;

std::string lower(std::string_view name) {
  std::string out(name);
  // iSCSI names are compared after folding (RFC 7143 §4.2.7.2); only ASCII can be sent to us.
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool contains(std::span<const NexusId> ids, const NexusId& id) {
  return std::any_of(ids.begin(), ids.end(), [&](const NexusId& i) { return same_ports(i, id); });
}

void resolve_also(const NexusId& own, std::span<const NexusId> known, PrRequest& request) {
  scsi::TransportId id;
  size_t at = 0;
  for (size_t start = 0; request.list.transport_ids.next(&at, &id); start = at) {
    const std::string name = lower(id.name);
    const size_t before = request.also.size();
    bool twice = false;
    const auto add = [&](const std::array<uint8_t, 6>& isid) {
      NexusId nexus = own;  // the same target port
      nexus.initiator_name = name;
      nexus.isid = isid;
      twice =
          twice || same_ports(nexus, own) || contains(std::span(request.also).first(before), nexus);
      if (!contains(request.also, nexus)) request.also.push_back(std::move(nexus));
    };
    if (id.has_isid) {
      add(id.isid);
    } else {
      for (const NexusId& k : known) {
        if (k.initiator_name == name) add(k.isid);
      }
    }
    if (twice || request.also.size() == before) {
      request.fault = scsi::Sense::invalid_field_in_parameter_list(
          static_cast<uint16_t>(kSpecifiedIdsAt + start));
      return;
    }
  }
}

void resolve_move(const NexusId& own, std::span<const NexusId> known, PrRequest& request) {
  scsi::TransportId id;
  size_t at = 0;
  // A device name does not name a port to which the reservation can move (SPC-5 §5.14.8).
  if (!request.list.transport_ids.next(&at, &id) || !id.has_isid) {
    request.fault = scsi::Sense::invalid_field_in_parameter_list(kMoveTransportIdAt);
    return;
  }
  const uint16_t port = request.list.relative_target_port;
  const NexusId* by = own.relative_target_port == port ? &own : nullptr;
  for (const NexusId& k : known) {
    if (!by && k.relative_target_port == port) by = &k;
  }
  if (!by) {
    request.fault = scsi::Sense::invalid_field_in_parameter_list(kRelativePortAt);
    return;
  }
  NexusId to = *by;
  to.initiator_name = lower(id.name);
  to.isid = id.isid;
  request.move_to = std::move(to);
}

}  // namespace

void resolve_transport_ids(const NexusId& own, std::span<const NexusId> known, PrRequest& request) {
  if (request.list.spec_i_pt) resolve_also(own, known, request);
  if (request.list.action == scsi::PrOutAction::kRegisterAndMove) resolve_move(own, known, request);
}

}  // namespace sluice::lun
