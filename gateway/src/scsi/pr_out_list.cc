#include "scsi/pr_out_list.h"

namespace sluice::scsi {
namespace {

constexpr size_t kBasicList = 24;
constexpr size_t kIdsAt = 28;  // SPEC_I_PT: after the length of the TransportIDs
constexpr size_t kMoveIdAt = 24;

Sense list_length_error() { return Sense::make(SenseKey::kIllegalRequest, 0x1a, 0x00); }

PrType type_of(uint8_t scope_and_type) {
  if (scope_and_type >> 4 != 0) return PrType::kNone;  // SCOPE: only the whole unit
  switch (const auto type = static_cast<PrType>(scope_and_type & 0x0f)) {
    case PrType::kWriteExclusive:
    case PrType::kExclusiveAccess:
    case PrType::kWriteExclusiveRegistrantsOnly:
    case PrType::kExclusiveAccessRegistrantsOnly:
    case PrType::kWriteExclusiveAllRegistrants:
    case PrType::kExclusiveAccessAllRegistrants:
      return type;
    default:
      return PrType::kNone;
  }
}

bool is_register(PrOutAction action) {
  return action == PrOutAction::kRegister || action == PrOutAction::kRegisterAndIgnoreExistingKey;
}

// All of `ids` is TransportIDs, or *sense says where not.
bool check_ids(ByteView ids, size_t offset, Sense* sense) {
  for (size_t at = 0; at < ids.size();) {
    size_t used = 0;
    const auto id = parse_transport_id(ids.subspan(at), static_cast<uint16_t>(offset + at), &used);
    if (!id) {
      *sense = id.sense();
      return false;
    }
    at += used;
  }
  return true;
}

// SPC-5 §6.17.3
Outcome<PrOutRequest> parse_basic(PrOutRequest request, ByteView data) {
  const uint8_t flags = data[20];
  request.spec_i_pt = (flags & 0x08) != 0;
  if (request.spec_i_pt && request.action != PrOutAction::kRegister) {
    return Sense::invalid_field_in_parameter_list(20, 3);
  }
  if (is_register(request.action)) {
    request.all_target_ports = (flags & 0x04) != 0;
    request.aptpl = (flags & 0x01) != 0;
  }
  if (!request.spec_i_pt) {
    if (data.size() != kBasicList) return list_length_error();
    return request;
  }
  if (data.size() < kIdsAt) return list_length_error();
  if (load_be32(&data[24]) != data.size() - kIdsAt) return list_length_error();
  const ByteView ids = data.subspan(kIdsAt);
  Sense sense;
  if (!check_ids(ids, kIdsAt, &sense)) return sense;
  request.transport_ids = TransportIdList(ids);
  return request;
}

// SPC-5 §6.17.4
Outcome<PrOutRequest> parse_move(PrOutRequest request, ByteView data) {
  request.unregister = (data[17] & 0x02) != 0;
  request.aptpl = (data[17] & 0x01) != 0;
  request.relative_target_port = load_be16(&data[18]);
  const ByteView ids = data.subspan(kMoveIdAt);
  if (load_be32(&data[20]) != ids.size()) return list_length_error();
  size_t used = 0;
  const auto id = parse_transport_id(ids, kMoveIdAt, &used);
  if (!id) return id.sense();
  if (used != ids.size()) return Sense::invalid_field_in_parameter_list(20, 7);
  if (request.service_action_key == 0) return Sense::invalid_field_in_parameter_list(8, 7);
  request.transport_ids = TransportIdList(ids);
  return request;
}

}  // namespace

bool TransportIdList::next(size_t* at, TransportId* id) const {
  if (*at >= ids_.size()) return false;
  size_t used = 0;
  const auto parsed = parse_transport_id(ids_.subspan(*at), 0, &used);
  if (!parsed) return false;
  *id = *parsed;
  *at += used;
  return true;
}

Outcome<PrOutRequest> parse_pr_out(ByteView cdb, ByteView data) {
  PrOutRequest request;
  request.action = static_cast<PrOutAction>(cdb[1] & 0x1f);
  request.type = type_of(cdb[2]);
  const bool needs_type =
      request.action == PrOutAction::kReserve || request.action == PrOutAction::kRelease;
  if (needs_type && request.type == PrType::kNone) {
    return cdb[2] >> 4 != 0 ? Sense::invalid_field_in_cdb(2, 7) : invalid_pr_type();
  }
  const uint32_t list_length = load_be32(&cdb[5]);
  if (list_length < kBasicList || data.size() < list_length) return list_length_error();
  data = data.first(list_length);
  request.key = load_be64(&data[0]);
  request.service_action_key = load_be64(&data[8]);
  if (request.action == PrOutAction::kRegisterAndMove) return parse_move(request, data);
  return parse_basic(request, data);
}

}  // namespace sluice::scsi
