#include "scsi/report_opcodes.h"

#include "scsi/response_writer.h"

namespace sluice::scsi {
namespace {

enum Option : uint8_t { kAll = 0, kOpcode = 1, kOpcodeAndAction = 2, kEither = 3 };

// SPC-5 §6.34.4
void write_timeouts(ResponseWriter& w, const CommandInfo& info) {
  w.u16(0x000a);
  w.u8(0);
  w.u8(0);
  w.u32(0);                     // NOMINAL COMMAND PROCESSING TIMEOUT: none reported
  w.u32(info.timeout_seconds);  // RECOMMENDED COMMAND TIMEOUT
}

// SPC-5 §6.34.2
size_t build_all(bool timeouts, const Support& support, MutableBytes out) {
  ResponseWriter w(out);
  w.u32(0);
  for (const CommandInfo& info : command_table()) {
    if (!supported(info, support)) continue;
    const bool has_action = info.service_action != kNoServiceAction;
    w.u8(info.opcode);
    w.u8(0);
    w.u16(has_action ? info.service_action : 0);
    w.u8(0);
    w.u8(static_cast<uint8_t>((timeouts ? 0x02 : 0) | (has_action ? 0x01 : 0)));
    w.u16(info.cdb_length);
    if (timeouts) write_timeouts(w, info);
  }
  w.set_u32(0, static_cast<uint32_t>(w.full() - 4));
  return w.size();
}

// SPC-5 §6.34.3
size_t build_one(const CommandInfo* info, bool timeouts, const Support& support, MutableBytes out) {
  constexpr uint8_t kNotSupported = 0x01;
  constexpr uint8_t kAsInStandard = 0x03;
  ResponseWriter w(out);
  w.u8(0);
  if (info == nullptr) {
    w.u8(kNotSupported);
    w.u16(0);
    return w.size();
  }
  w.u8(static_cast<uint8_t>((timeouts ? 0x80 : 0) | kAsInStandard));
  w.u16(info->cdb_length);
  uint8_t usage[16];
  usage_of(*info, support, usage);
  w.bytes(ByteView(usage).first(info->cdb_length));
  if (timeouts) write_timeouts(w, *info);
  return w.size();
}

// Whether any command with this opcode has service actions.
bool has_service_actions(uint8_t opcode, const Support& support) {
  for (const CommandInfo& info : command_table()) {
    if (info.opcode == opcode && info.service_action != kNoServiceAction &&
        supported(info, support)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Outcome<size_t> build_report_opcodes(ByteView cdb, const Support& support, MutableBytes out) {
  const bool timeouts = (cdb[2] & 0x80) != 0;  // RCTD
  const uint8_t option = cdb[2] & 0x07;
  const uint8_t opcode = cdb[3];
  const uint16_t action = load_be16(&cdb[4]);
  if (option == kAll) return build_all(timeouts, support, out);
  if (option > kEither) return Sense::invalid_field_in_cdb(2, 2);

  const bool actions = has_service_actions(opcode, support);
  const CommandInfo* info = lookup_command(opcode, action);
  if (info != nullptr && !supported(*info, support)) info = nullptr;
  if (option == kOpcode && actions) return Sense::invalid_field_in_cdb(2, 2);
  // A service action asked of an opcode that has none: an error, or by option 3 "not supported".
  if (option == kOpcodeAndAction && !actions && info != nullptr) {
    return Sense::invalid_field_in_cdb(2, 2);
  }
  if (option == kEither && !actions && action != 0) info = nullptr;
  return build_one(info, timeouts, support, out);
}

size_t build_report_task_management(ByteView cdb, const TaskManagementSupport& s,
                                    MutableBytes out) {
  const bool extended = (cdb[2] & 0x80) != 0;  // REPD
  uint8_t first = 0;
  if (s.abort_task) first |= 0x80;
  if (s.abort_task_set) first |= 0x40;
  if (s.clear_aca) first |= 0x20;
  if (s.clear_task_set) first |= 0x10;
  if (s.lu_reset) first |= 0x08;
  if (s.query_task) first |= 0x04;
  uint8_t second = 0;
  if (s.query_async_event) second |= 0x04;
  if (s.query_task_set) second |= 0x02;
  if (s.it_nexus_reset) second |= 0x01;
  ResponseWriter w(out);
  w.u8(first);
  w.u8(second);
  w.u8(0);
  w.u8(extended ? 0x0c : 0);
  if (extended) w.zeros(12);  // TMFTMOV 0: no timeouts reported
  return w.size();
}

}  // namespace sluice::scsi
