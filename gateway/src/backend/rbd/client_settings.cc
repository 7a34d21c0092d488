#include "rbd/client_settings.h"

#include <vector>

#include "backend/failure.h"
#include "base/limits.h"
#include "base/safety_mutation.h"
#include "rbd/ceph_error.h"

namespace sluice::rbd {

using backend::CephAccess;
using backend::fail;

std::string cluster_of(const CephAccess& access) {
  if (!access.monitors.empty()) return "Ceph at " + access.monitors;
  return "Ceph of " +
         (access.config_file.empty() ? std::string("/etc/ceph/ceph.conf") : access.config_file);
}

std::string seconds_of(Nanos t) {
  return std::to_string(static_cast<double>(t) / static_cast<double>(kSecond));
}

namespace {

struct Setting {
  const char* name;
  std::string value;
};

// Applied after the files were read, so that no file changes them.
std::vector<Setting> settings_of(const CephAccess& access) {
  const std::string bound = std::to_string(limits::kCephConnect / kSecond);
  std::vector<Setting> settings = {
      // Acknowledged is durable (DESIGN R12): librbd's cache acknowledges from memory.
      {"rbd_cache", mutation_disables(Guard::kRbdCache) ? "true" : "false"},
      {"rbd_cache_writethrough_until_flush",
       mutation_disables(Guard::kRbdCache) ? "false" : "true"},
      // librbd's own copy of a write: without it (16.2) a write in flight to a blocklisted client's
      // disk may never end, nor may the closing of its image (gateway/decisions/ceph.md).
      {"rbd_disable_zero_copy_writes", "true"},
      {"rbd_discard_granularity_bytes", "4096"},
      {"rbd_atime_update_interval", "0"},
      {"rbd_mtime_update_interval", "0"},
      // The gateway itself blocklists a lock's previous holder, permanently and earlier
      // (Image::wait_for_lock). librbd would do it for an hour, and the first entry of an address
      // counts.
      {"rbd_blocklist_on_break_lock", "false"},
      {"client_mount_timeout", bound},
      {"rados_mon_op_timeout", bound},
      // An aborted write might still be executed.
      {"rados_osd_op_timeout", "0"},
      // Interval of retries at a monitor that is not ready. The default is 3 s and more, which
      // delayed clients that connected at the same time.
      {"mon_client_hunt_interval", "0.5"},
      // Shorter than the defaults of 5 s and 10 s, to notice a recovered disk.
      {"objecter_tick_interval", seconds_of(limits::kCephTick)},
      {"objecter_timeout", "1"},
      // At these limits the calling thread blocks, even a reactor (Image::check_fence). A pool
      // whose placement groups are inactive never frees its share, which blocks all others of the
      // client. So the gateway's own limits are lower.
      {"objecter_inflight_ops", std::to_string(limits::kCephInFlight)},
      {"objecter_inflight_op_bytes", std::to_string(limits::kCephInFlightBytes)},
      {"admin_socket", ""},
      {"log_file", ""},
      {"log_to_stderr", "false"},
      {"err_to_stderr", "false"},
  };
  if (!access.monitors.empty()) settings.push_back({"mon_host", access.monitors});
  if (!access.keyring_file.empty()) settings.push_back({"keyring", access.keyring_file});
  if (!access.key.empty()) settings.push_back({"key", access.key});
  return settings;
}

}  // namespace

Result<void> configure(rados_t cluster, const CephAccess& access) {
  if (access.monitors.empty() || !access.config_file.empty()) {
    const char* file = access.config_file.empty() ? nullptr : access.config_file.c_str();
    const int r = rados_conf_read_file(cluster, file);
    if (r < 0) {
      return fail(cluster_of(access), "can't read its configuration: " + ceph_error(r),
                  "name the monitors, or a file the gateway's user may read");
    }
  }
  for (const auto& [name, value] : settings_of(access)) {
    const int r = rados_conf_set(cluster, name, value.c_str());
    if (r < 0) return fail(cluster_of(access), std::string("refuses ") + name, ceph_error(r));
  }
  return {};
}

}  // namespace sluice::rbd
