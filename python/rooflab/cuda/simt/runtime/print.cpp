// A kernel's printf. Its own format never reaches the C library: %n would write, and %s read, wherever it says. What is
// beyond a million letters is left out, as a GPU leaves out what does not fit into its buffer.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "device/codes.h"
#include "memory.h"

namespace simt {
namespace {

constexpr size_t kMost = 1 << 20;
size_t printed = 0, waiting = 0;
char buffer[64 << 10];

void print(const char* text, size_t count) {
  for (size_t i = 0; i < count && printed < kMost; ++i, ++printed) {
    if (waiting == sizeof buffer) flush_printed();
    buffer[waiting++] = text[i];
  }
}

void print(char letter) { print(&letter, 1); }
void print(const char* text) { print(text, std::strlen(text)); }

// A string that the kernel may read, wherever it lies.
void print_string(uint64_t address) {
  if (address == 0) return print("(null)");
  for (uint64_t counted;; ++address) {
    if (find(address, 1, false, counted) == Where::kNowhere) return print("(bad pointer)");
    const char letter = *reinterpret_cast<const char*>(address);
    if (!letter) return;
    print(letter);
  }
}

template <typename T>
void print_number(const char* format, T number) {
  char text[512];  // 1e308 in full, with 99 places behind the point
  const int count = std::snprintf(text, sizeof text, format, number);
  if (count > 0) print(text, count < 512 ? count : 511);
}

}  // namespace

void flush_printed() {
  for (size_t done = 0; done < waiting;) {
    const ssize_t more = write(STDOUT_FILENO, buffer + done, waiting - done);
    if (more <= 0) break;
    done += static_cast<size_t>(more);
  }
  waiting = 0;
}

}  // namespace simt

extern "C" void rl_printf(const char* format, const rl_value* values, int count) {
  using namespace simt;
  int used = 0;
  for (const char* at = format; *at; ++at) {
    if (*at != '%') {
      print(*at);
      continue;
    }
    if (at[1] == '%') {
      print(*at++);
      continue;
    }
    char flags[16];
    int filled = 0;
    flags[filled++] = *at++;
    for (int digits = 0; *at && std::strchr("-+ #0123456789.*", *at); ++at) {
      digits = *at >= '0' && *at <= '9' ? digits + 1 : 0;
      if (*at == '*') {  // the width is an argument
        const int width = used < count ? static_cast<int>(values[used++].bits) : 0;
        filled += std::snprintf(flags + filled, 4, "%d", width < -9 || width > 99 ? 0 : width);
        if (filled > 10) filled = 10;
      } else if (digits <= 2 && filled < 10) {
        flags[filled++] = *at;  // a width is at most 99
      }
    }
    int bits = 32;
    for (; *at && std::strchr("hlzjt", *at); ++at) bits = *at != 'h' ? 64 : bits / 2;
    if (!*at) break;
    if (used == count) {
      print("(missing)");
      continue;
    }
    const rl_value value = values[used++];
    const rl_kind wanted = std::strchr("fFeEgGaA", *at) ? rl_real : *at == 's' ? rl_pointer : rl_integer;
    if (value.kind != wanted && !(wanted == rl_integer && value.kind == rl_pointer)) {
      print("(wrong type)");
    } else if (std::strchr("di", *at)) {
      std::strcpy(flags + filled, "lld");
      print_number(flags, static_cast<long long>(value.bits << (64 - bits)) >> (64 - bits));
    } else if (std::strchr("uxXo", *at)) {
      const char spelled[] = {'l', 'l', *at, 0};
      std::strcpy(flags + filled, spelled);
      print_number(flags, static_cast<unsigned long long>(value.bits) << (64 - bits) >> (64 - bits));
    } else if (std::strchr("fFeEgGaA", *at)) {
      const char spelled[] = {*at, 0};
      std::strcpy(flags + filled, spelled);
      double number;
      std::memcpy(&number, &value.bits, sizeof number);
      print_number(flags, number);
    } else if (*at == 'c') {
      print(static_cast<char>(value.bits));
    } else if (*at == 'p') {
      print_number("0x%llx", static_cast<unsigned long long>(value.bits));
    } else if (*at == 's') {
      print_string(value.bits);
    }
  }
}
