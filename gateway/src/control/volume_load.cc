#include "control/volume_load.h"

#include "unit/statistics.h"

namespace sluice::control {

void add_load(const lun::Unit& unit, wire::StreamHeartbeat* beat) {
  const lun::UnitSnapshot figures = unit.statistics().snapshot();
  wire::VolumeLoad& load = *beat->add_loads();
  load.set_uid(unit.uuid_text());
  for (const uint64_t count : figures.operations) load.set_commands(load.commands() + count);
  load.set_bytes(figures.read_bytes + figures.written_bytes);
  load.set_reads(figures.operations[static_cast<size_t>(lun::Activity::kRead)]);
  load.set_writes(figures.operations[static_cast<size_t>(lun::Activity::kWrite)]);
  load.set_read_bytes(figures.read_bytes);
  load.set_write_bytes(figures.written_bytes);
  load.set_read_time_ns(figures.read_latency.sum);
  load.set_write_time_ns(figures.write_latency.sum);
  load.set_in_progress(static_cast<uint32_t>(figures.in_flight));
}

}  // namespace sluice::control
