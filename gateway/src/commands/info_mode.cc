// MODE SENSE, MODE SELECT, LOG SENSE.
#include <memory>

#include "commands/handlers.h"
#include "scsi/log_pages.h"
#include "scsi/mode_pages.h"
#include "unit/write_cache.h"

namespace sluice::lun {
namespace {

constexpr UnitAttention kModeChanged{0x2a, 0x01};  // MODE PARAMETERS CHANGED
constexpr size_t kMaxLogData = 512;                // bytes; no page is longer

scsi::ModeUnit mode_unit(const Unit& unit, const Command& command) {
  const Unit::ModeParameters mode = unit.mode();
  scsi::ModeUnit m;
  m.current.wce = unit.reported_write_cache();
  m.current.d_sense = mode.descriptor_sense;
  m.current.swp = mode.software_write_protect;
  m.defaults.wce = unit.default_write_cache();
  m.write_protected = unit.read_only() || command.itl->read_only;
  m.blocks = unit.blocks();
  m.block_size = unit.block_size();
  return m;
}

uint32_t room(const Command& command) {
  return scsi::allocation_length(*command.info, command.full_cdb());
}

void take_mode(Unit& unit, Command& command, const scsi::ModeState& now) {
  // The command may have been aborted during the flush. The cache is off nevertheless, so its host
  // gets the unit attention too. Its other values may predate a reset.
  if (!command.aborted()) {
    unit.set_mode({.descriptor_sense = now.d_sense, .software_write_protect = now.swp});
  }
  unit.attached().raise_owners(kModeChanged, command.aborted() ? nullptr : command.itl,
                               *command.nexus->reactor_context().now);
  finish_good(command);
}

// The medium can't: INVALID FIELD IN PARAMETER LIST.
void refuse_cache(Command& command) {
  finish_sense(command, scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x26, 0x00));
}

}  // namespace

void handle_mode_sense(Unit& unit, Command& command) {
  std::array<uint8_t, scsi::kMaxModeData> out;
  const auto size = scsi::build_mode_sense(command.full_cdb(), mode_unit(unit, command), out);
  if (!size) return finish_sense(command, size.sense());
  finish_data(command, ByteView(out).first(*size), room(command));
}

void handle_mode_select(Unit& unit, Command& command) {
  const scsi::ModeUnit before = mode_unit(unit, command);
  const auto parsed = scsi::parse_mode_select(command.full_cdb(), before, gather_data_out(command));
  if (!parsed) return finish_sense(command, parsed.sense());
  const scsi::ModeState& now = *parsed;
  if (now == before.current) return finish_good(command);
  if (now.wce == before.current.wce) return take_mode(unit, command, now);
  // Another command is switching it off, and the result is not known yet.
  if (unit.cache_settling()) return finish_status(command, scsi::Status::kBusy);
  if (now.wce) {
    const std::optional<bool> on = enable_write_cache(unit);
    if (!on) return finish_status(command, scsi::Status::kBusy);
    return *on ? take_mode(unit, command, now) : refuse_cache(command);
  }
  const auto flushed = [&unit, &command, now](const backend::Io& io) {
    if (io.result >= 0) return take_mode(unit, command, now);
    if (io.answer.status != 0) return finish_answered(command, io.answer);
    finish_errno(command, static_cast<int>(io.result), io.op);
  };
  if (!disable_write_cache(unit, command.nexus->reactor_context(), flushed)) refuse_cache(command);
}

void handle_log_sense(Unit& unit, Command& command) {
  if (unit.support().pass_through) return handle_pass_through(unit, command);
  auto log = std::make_shared<scsi::LogUnit>();
  log->has_provisioning = unit.provisioning().thin;
  log->block_size = unit.block_size();
  const auto ask = [log](const backend::Backend& b) { log->available_bytes = b.free_bytes(); };
  ask_medium(unit, command, ask, [log, &command] {
    std::array<uint8_t, kMaxLogData> out;
    const auto size = scsi::build_log_sense(command.full_cdb(), *log, out);
    if (!size) return finish_sense(command, size.sense());
    finish_data(command, ByteView(out).first(*size), room(command));
  });
}

}  // namespace sluice::lun
