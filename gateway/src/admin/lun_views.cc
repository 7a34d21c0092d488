#include "admin/lun_report.h"
#include "unit/unit.h"

namespace sluice::admin {
namespace {

std::string state_of(const lun::Unit& unit) {
  if (unit.stopped()) return "stopped";
  const uint32_t gate = unit.gate();
  if ((gate & lun::Unit::kRemoved) != 0) return "removed";
  if ((gate & lun::Unit::kNotReady) != 0) return "not-ready";
  return (gate & lun::Unit::kStuck) != 0 ? "stuck" : "ready";
}

LunView view_of(const lun::Target& target, const lun::Target::LunEntry& entry, size_t nexuses) {
  const lun::Unit& unit = *entry.unit;
  return {.target = target.iqn(),
          .lun = entry.lun,
          .uuid = unit.uuid_text(),
          .product = unit.identity().product,
          .size_bytes = unit.blocks() * unit.block_size(),
          .block_size = unit.block_size(),
          .read_only = unit.read_only() || entry.read_only,
          .write_cache = unit.write_cache(),
          .state = state_of(unit),
          .reserved = (unit.gate() & lun::Unit::kReserved) != 0,
          .nexuses = nexuses,
          .figures = unit.statistics().snapshot()};
}

}  // namespace

std::vector<LunView> lun_views(const lun::Exports& exports) {
  std::vector<LunView> views;
  for (const auto& target : exports.all()) {
    const size_t nexuses = target->nexuses().size();
    for (const auto& entry : target->luns()) views.push_back(view_of(*target, entry, nexuses));
  }
  return views;
}

}  // namespace sluice::admin
