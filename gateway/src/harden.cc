#include "harden.h"

#include <sys/prctl.h>
#include <sys/resource.h>

namespace sluice {

// DESIGN R14: a process that writes a core file dies late, and the file would hold secrets.
void harden(bool core_dumps) {
  if (!core_dumps) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  }
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
}

}  // namespace sluice
