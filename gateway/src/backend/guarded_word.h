// Loads and stores of one word in a mapped file. If another process truncates the file, the kernel
// raises SIGBUS at the access; these functions then fail instead of ending the process.
//
// Threads: any. A thread must not run two accesses at once, so do not call them in signal handlers.
#pragma once

#include <cstdint>
#include <optional>

namespace sluice::backend {

// Installs the process's SIGBUS handler, once. Other faults are passed to the previous handler, or
// end the process as before. Call it before the first access.
void install_word_guard();

// No value: the page is missing, or the hardware reported it broken.
std::optional<uint64_t> load_guarded(const uint64_t* word);
// False: as above.
bool store_guarded(uint64_t* word, uint64_t value);

}  // namespace sluice::backend
