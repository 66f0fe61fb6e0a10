#include "plugins/cri-native/runtime/spec/process.hpp"

#include <csignal>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/invalid.hpp"

namespace gantry::cri_native {

namespace {

void set_variable(std::vector<std::string>& environment, std::string_view name, std::string_view value) {
    std::string text(name);
    text += '=';
    const std::size_t prefix = text.size();
    text += value;
    const auto same = std::find_if(environment.begin(), environment.end(), [&](const std::string& entry) {
        return entry.compare(0, prefix, text, 0, prefix) == 0;
    });
    if (same == environment.end())
        environment.push_back(std::move(text));
    else
        *same = std::move(text);
}

struct signal_name {
    std::string_view name;
    int number;
};

constexpr signal_name signal_names[] = {
    {"ABRT", SIGABRT},     {"ALRM", SIGALRM}, {"BUS", SIGBUS},       {"CHLD", SIGCHLD},   {"CLD", SIGCHLD},
    {"CONT", SIGCONT},     {"FPE", SIGFPE},   {"HUP", SIGHUP},       {"ILL", SIGILL},     {"INT", SIGINT},
    {"IO", SIGIO},         {"IOT", SIGIOT},   {"KILL", SIGKILL},     {"PIPE", SIGPIPE},   {"POLL", SIGPOLL},
    {"PROF", SIGPROF},     {"PWR", SIGPWR},   {"QUIT", SIGQUIT},     {"SEGV", SIGSEGV},   {"STOP", SIGSTOP},
    {"STKFLT", SIGSTKFLT}, {"SYS", SIGSYS},   {"TERM", SIGTERM},     {"TRAP", SIGTRAP},   {"TSTP", SIGTSTP},
    {"TTIN", SIGTTIN},     {"TTOU", SIGTTOU}, {"URG", SIGURG},       {"USR1", SIGUSR1},   {"USR2", SIGUSR2},
    {"XCPU", SIGXCPU},     {"XFSZ", SIGXFSZ}, {"VTALRM", SIGVTALRM}, {"WINCH", SIGWINCH},
};

// The kernel's numbers: the C library keeps the first two real-time signals to itself, and its SIGRTMIN is theirs.
constexpr int rt_min = 34;
constexpr int rt_max = 64;

int number_of(std::string_view digits) {
    int value = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return failure == std::errc{} && end == digits.data() + digits.size() ? value : -1;
}

} // namespace

result<std::vector<std::string>> merge_command(const std::vector<std::string>& command,
                                               const std::vector<std::string>& args,
                                               const std::vector<std::string>& image_entrypoint,
                                               const std::vector<std::string>& image_cmd, std::string_view image) {
    std::vector<std::string> argv;
    if (!command.empty()) {
        argv = command;
        argv.insert(argv.end(), args.begin(), args.end());
    } else {
        if (image_entrypoint.size() != 1 || !image_entrypoint[0].empty()) argv = image_entrypoint;
        const auto& rest = args.empty() ? image_cmd : args;
        argv.insert(argv.end(), rest.begin(), rest.end());
    }
    if (argv.empty())
        return invalid("no command specified: neither the container nor image " + std::string(image) +
                       " names one; set command");
    if (argv[0].empty()) return invalid("the command's first word is empty; set command to a program");
    for (const auto& word : argv)
        if (word.find('\0') != std::string::npos)
            return invalid("a word of the command holds a NUL byte, which no program can be given");
    return argv;
}

result<std::vector<std::string>> merge_environment(const environment_request& request) {
    std::vector<std::string> environment;
    environment.reserve(4 + request.image_env.size() + request.variables.size());
    set_variable(environment, "PATH", default_path);
    if (!request.hostname.empty()) set_variable(environment, "HOSTNAME", request.hostname);
    if (request.tty) set_variable(environment, "TERM", "xterm");
    for (const auto& entry : request.image_env) {
        const auto equals = entry.find('=');
        // An image may hold a bare name or worse; programs see what exec passes, and these it could not use.
        if (equals == 0 || equals == std::string::npos || entry.find('\0') != std::string::npos) continue;
        set_variable(environment, std::string_view(entry).substr(0, equals),
                     std::string_view(entry).substr(equals + 1));
    }
    for (const auto& [name, value] : request.variables) {
        if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
            return invalid("environment variable name \"" + name + "\" is empty or holds '=' or NUL; rename it");
        if (value.find('\0') != std::string::npos)
            return invalid("environment variable " + name + " holds a NUL byte, which no program can be given");
        set_variable(environment, name, value);
    }
    if (!request.home.empty() && !find_variable(environment, "HOME")) set_variable(environment, "HOME", request.home);
    return environment;
}

std::optional<std::string_view> find_variable(const std::vector<std::string>& environment, std::string_view name) {
    for (const auto& entry : environment)
        if (entry.size() > name.size() && entry[name.size()] == '=' && entry.compare(0, name.size(), name) == 0)
            return std::string_view(entry).substr(name.size() + 1);
    return std::nullopt;
}

result<void> check_exec_size(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                             std::size_t stack_limit) {
    constexpr std::size_t one_limit = 128u << 10; // MAX_ARG_STRLEN, its NUL included
    constexpr std::size_t cap = 6u << 20;         // three quarters of _STK_LIM, whatever the stack limit
    constexpr std::size_t floor = 128u << 10;     // ARG_MAX, whatever the stack limit
    const std::size_t limit = std::max(floor, std::min(cap, stack_limit / 4));
    std::size_t arguments = 0;
    std::size_t variables = 0;
    for (const auto& word : argv) {
        if (word.size() >= one_limit)
            return invalid("an argument has " + std::to_string(word.size()) + " bytes; the kernel's limit for one is " +
                           std::to_string(one_limit - 1) + ": pass it in a file");
        arguments += word.size() + 1 + sizeof(char*);
    }
    for (const auto& entry : environment) {
        if (entry.size() >= one_limit)
            return invalid("environment variable " + entry.substr(0, entry.find('=')) + " has " +
                           std::to_string(entry.size()) + " bytes; the kernel's limit for one is " +
                           std::to_string(one_limit - 1) + ": mount it as a file");
        variables += entry.size() + 1 + sizeof(char*);
    }
    if (arguments + variables > limit)
        return invalid(
            "arguments (" + std::to_string(arguments) + " bytes) and environment (" + std::to_string(variables) +
            " bytes in " + std::to_string(environment.size()) + " variables) exceed the kernel's limit of " +
            std::to_string(limit) +
            " bytes: set enableServiceLinks: false if the namespace has many Services, or mount values as files");
    return {};
}

int parse_signal(std::string_view text) {
    std::string upper(text);
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
    std::string_view name = upper;
    if (name.empty()) return 0;
    if (std::isdigit(static_cast<unsigned char>(name.front()))) {
        const int number = number_of(name);
        return number >= 1 && number <= rt_max ? number : 0;
    }
    if (name.substr(0, 3) == "SIG") name.remove_prefix(3);
    for (const auto& known : signal_names)
        if (known.name == name) return known.number;
    const bool from_min = name.substr(0, 5) == "RTMIN";
    if (!from_min && name.substr(0, 5) != "RTMAX") return 0;
    name.remove_prefix(5);
    if (name.empty()) return from_min ? rt_min : rt_max;
    if (name.front() != (from_min ? '+' : '-')) return 0;
    const int offset = number_of(name.substr(1));
    if (offset < 0 || offset > rt_max - rt_min) return 0;
    return from_min ? rt_min + offset : rt_max - offset;
}

} // namespace gantry::cri_native
