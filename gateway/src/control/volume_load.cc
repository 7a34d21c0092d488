#include "control/volume_load.h"

#include "unit/statistics.h"

namespace sluice::control {

void add_load(const lun::Unit& unit, wire::StreamHeartbeat* beat) {
  const lun::UnitSnapshot figures = unit.statistics().snapshot();
  wire::VolumeLoad& load = *beat->add_loads();
  load.set_uid(unit.uuid_text());
  for (const uint64_t count : figures.operations) load.set_commands(load.commands() + count);
  load.set_bytes(figures.read_bytes + figures.written_bytes);
}

}  // namespace sluice::control
