/* SPDX-License-Identifier: Apache-2.0 */
/* Flows: what is let out and to whom, what is refused and told, changes of policy, limits. */
#include "egress_fixture.h"

#include <sys/resource.h>

#include "base/guards.h"

/* --- by address --- */

static void a_listed_address_is_relayed_to(void **state)
{
    struct fixture *x = *state;
    struct address to = address_of(IN_RANGE);

    x->listener = listen_at(IN_RANGE, 7000);
    begin(x, &to, 7000);
    wait_server(x);
    put_text(x, x->server, "220 hello");
    expect_text(x, x->client, "220 hello");
    put_text(x, x->client, "\x16\x03\x01 any bytes go to a range");
    expect_text(x, x->server, "\x16\x03\x01 any bytes go to a range");
    assert_return_code(shutdown(x->client, SHUT_WR), errno);
    expect_end(x, x->server);
    fd_closep(&x->server);
    expect_end(x, x->client);
    assert_int_equal(x->e.flows.n, 0);
    assert_int_equal(x->told.n, 0);
}

static void a_mapped_address_is_the_address_in_it(void **state)
{
    struct fixture *x = *state;
    struct address to = address_of("::ffff:" IN_RANGE);

    x->listener = listen_at(IN_RANGE, 7000);
    begin(x, &to, 7000);
    wait_server(x);
}

static void an_address_that_nothing_lists_is_refused(void **state)
{
    struct fixture *x = *state;
    struct address to = address_of(NOT_LISTED);

    begin(x, &to, 7000);
    expect_refused(x, DENIAL_TCP, NOT_LISTED);
    assert_string_equal(x->told.rule, "no rule");
    assert_string_equal(x->told.address, NOT_LISTED);
    assert_int_equal(x->told.port, 7000);
}

static void the_listener_itself_is_no_way_out(void **state)
{
    struct fixture *x = *state;
    struct address to = address_of("127.0.0.1");

    begin(x, &to, 443);
    expect_reset(x, x->client);
    assert_int_equal(x->told.n, 0);
    assert_int_equal(x->e.flows.n, 0);
}

static void a_failed_dial_is_told_as_such(void **state)
{
    struct fixture *x = *state;
    struct address to = address_of(IN_RANGE);

    begin(x, &to, 7001); /* nobody listens */
    expect_refused(x, DENIAL_TCP, "dial failed: Connection refused");
    assert_string_equal(x->told.rule, "dial failed");
}

static void port_53_is_the_resolvers_unless_a_range_lists_it(void **state)
{
    struct fixture *x = *state;
    struct address any = address_of("192.0.2.53"), listed = address_of(IN_RANGE);

    begin(x, &any, 53);
    assert_int_equal(x->dns, 1);
    fd_closep(&x->client);
    x->listener = listen_at(IN_RANGE, 53);
    begin(x, &listed, 53);
    assert_int_equal(x->dns, 1);
    wait_server(x);
    fd_closep(&x->client);
    set_policy(x, NULL, 0);
    begin(x, &any, 53);
    expect_reset(x, x->client);
    assert_int_equal(x->dns, 1);
    assert_int_equal(x->told.n, 1);
}

/* --- by name --- */

static void an_address_of_the_pool_that_nobody_was_given_is_refused(void **state)
{
    struct fixture *x = *state;
    struct address to = names_address(&x->e.names, add_name(x, "ok.test"), ADDRESS_V4);

    to.bytes[3]++;
    begin(x, &to, 443);
    expect_refused(x, DENIAL_TCP, "nobody asked for that name lately");
}

static void a_name_is_refused_on_a_port_that_no_entry_lists(void **state)
{
    struct fixture *x = *state;

    begin_name(x, "ok.test", 8443);
    expect_refused(x, DENIAL_TCP, "8443");
    assert_string_equal(x->told.name, "ok.test");
}

static void a_server_that_speaks_first_is_heard(void **state)
{
    struct fixture *x = *state;

    x->listener = listen_at(OUTSIDE, 22);
    begin_name(x, "ok.test", 22);
    wait_server(x);
    put_text(x, x->server, "SSH-2.0-x\r\n");
    expect_text(x, x->client, "SSH-2.0-x\r\n");
    put_text(x, x->client, "SSH-2.0-y\r\n");
    expect_text(x, x->server, "SSH-2.0-y\r\n");
    assert_int_equal(add_name(x, "ok.test")->users, 1);
    fd_closep(&x->client);
    expect_end(x, x->server);
    fd_closep(&x->server);
    while (x->e.flows.n > 0)
        turn(x);
    assert_int_equal(add_name(x, "ok.test")->users, 0);
}

static void a_name_with_a_private_address_is_refused_with_it(void **state)
{
    struct fixture *x = *state;
    struct name *name = add_name(x, "found.test");
    struct resolve_address found = {.family = 4, .bytes = {169, 254, 169, 254}};

    assert_int_equal(names_found(name, RESOLVE_FOUND, &found, 1, CLOCK_NEVER - 1), 0);
    begin_name(x, "found.test", 443);
    assert_int_equal(x->told.n, 0);
    flow_dial(x->e.flows.first);
    expect_refused(x, DENIAL_TCP, "found.test has the address 169.254.169.254, which is ");
    assert_non_null(strstr(x->told.reason, ", and no range lists it"));
    assert_string_equal(x->told.address, "169.254.169.254");
    assert_int_equal(name->users, 0);
}

static void a_name_without_addresses_is_told_as_a_failed_dial(void **state)
{
    struct fixture *x = *state;

    assert_int_equal(
        names_found(add_name(x, "found.test"), RESOLVE_NOT_FOUND, NULL, 0, CLOCK_NEVER - 1), 0);
    begin_name(x, "found.test", 443);
    flow_dial(x->e.flows.first);
    expect_refused(x, DENIAL_TCP, "dial failed: the name has no address");
}

/* --- accepting --- */

static void accepted_sockets_tell_where_the_program_connected_to(void **state)
{
    struct fixture *x = *state;
    struct address to = names_address(&x->e.names, add_name(x, "ok.test"), ADDRESS_V4);
    char text[ADDRESS_TEXT_BYTES];
    int inside;

    address_format(&to, text);
    inside = listen_at(text, 22);
    x->listener = listen_at(OUTSIDE, 22);
    assert_int_equal(flows_listen(&x->e.flows, inside, -EBADF), 0);
    x->client = connect_at(text, 22);
    wait_server(x);
    put_text(x, x->client, "to the name");
    expect_text(x, x->server, "to the name");
    (void)close(inside);
}

static void without_descriptors_the_listener_is_silent_and_goes_on_later(void **state)
{
    struct fixture *x = *state;
    struct address to = names_address(&x->e.names, add_name(x, "ok.test"), ADDRESS_V4);
    char text[ADDRESS_TEXT_BYTES];
    struct rlimit was, none;
    int inside;

    address_format(&to, text);
    inside = listen_at(text, 8443);
    assert_int_equal(flows_listen(&x->e.flows, inside, -EBADF), 0);
    x->client = connect_at(text, 8443);
    assert_return_code(getrlimit(RLIMIT_NOFILE, &was), errno);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = was.rlim_max};
    assert_return_code(setrlimit(RLIMIT_NOFILE, &none), errno);
    for (unsigned i = 0; i < 5; i++)
        turn(x);
    assert_true(x->e.flows.full);
    assert_int_equal(x->told.n, 0);
    assert_return_code(setrlimit(RLIMIT_NOFILE, &was), errno);
    expect_refused(x, DENIAL_TCP, "8443"); /* the sweep has tried again */
    assert_false(x->e.flows.full);
    (void)close(inside);
}

/* --- another policy --- */

static void a_policy_that_forbids_an_open_flow_cuts_it(void **state)
{
    static const char *const fewer[] = {"ok.test:443", "other.test:443"};
    struct fixture *x = *state;

    x->listener = listen_at(OUTSIDE, 22);
    begin_name(x, "ok.test", 22);
    wait_server(x);
    put_text(x, x->client, "12345");
    expect_text(x, x->server, "12345");
    assert_int_equal(flows_recheck(&x->e.flows), 0);
    set_policy(x, fewer, ARRAY_SIZE(fewer));
    assert_int_equal(flows_recheck(&x->e.flows), 1);
    expect_refused(x, DENIAL_TCP, "22");
    assert_int_equal(x->told.bytes, 5);
    expect_reset(x, x->server);
}

static void a_flow_to_a_listed_address_is_cut_when_the_range_goes(void **state)
{
    struct fixture *x = *state;
    struct address to = address_of(IN_RANGE);

    x->listener = listen_at(IN_RANGE, 7000);
    begin(x, &to, 7000);
    wait_server(x);
    policy_done(&x->e.policy);
    x->e.policy = (struct policy){0};
    assert_int_equal(flows_recheck(&x->e.flows), 1);
    expect_refused(x, DENIAL_TCP, IN_RANGE);
}

/* The name stays listed; what let its private address pass is gone. */
static void a_flow_of_a_name_is_cut_when_its_address_may_not_be_dialled(void **state)
{
    struct fixture *x = *state;
    struct policy_pin *pins;

    x->listener = listen_at(OUTSIDE, 22);
    begin_name(x, "ok.test", 22);
    wait_server(x);
    pins = x->e.policy.pins;
    x->e.policy.pins[0].address = address_of("192.0.2.1");
    assert_int_equal(flows_recheck(&x->e.flows), 1);
    expect_refused(x, DENIAL_TCP, "ok.test has the address " OUTSIDE);
    assert_ptr_equal(pins, x->e.policy.pins);
}

/* --- limits --- */

static void a_client_that_says_nothing_is_closed_and_not_told(void **state)
{
    struct fixture *x = *state;

    begin_name(x, "ok.test", 443);
    x->e.flows.first->deadline_us = 1;
    loop_at(&x->e.loop, &x->e.flows.sweep, 1);
    expect_end(x, x->client);
    assert_int_equal(x->told.n, 0);
    assert_int_equal(x->e.flows.n, 0);
}

static void a_hello_that_does_not_come_to_its_end_is_refused(void **state)
{
    struct fixture *x = *state;

    begin_name(x, "ok.test", 443);
    put_bytes(x, x->client, "\x16\x03\x01\x02", 4);
    x->e.flows.first->deadline_us = 1;
    loop_at(&x->e.loop, &x->e.flows.sweep, 1);
    expect_refused(x, DENIAL_TLS, "in time");
    assert_int_equal(x->told.bytes, 4);
}

static void a_client_that_resets_ends_the_flow(void **state)
{
    struct fixture *x = *state;
    struct linger now = {.l_onoff = 1};

    begin_name(x, "ok.test", 443);
    assert_return_code(setsockopt(x->client, SOL_SOCKET, SO_LINGER, &now, sizeof now), errno);
    fd_closep(&x->client);
    while (x->e.flows.n > 0)
        turn(x);
    assert_int_equal(x->told.n, 0);
}

static void a_flow_takes_little_memory(void **state)
{
    (void)state;
    assert_true(sizeof(struct flow) <= 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        ROW(a_listed_address_is_relayed_to),
        ROW(a_mapped_address_is_the_address_in_it),
        ROW(an_address_that_nothing_lists_is_refused),
        ROW(the_listener_itself_is_no_way_out),
        ROW(a_failed_dial_is_told_as_such),
        ROW(port_53_is_the_resolvers_unless_a_range_lists_it),
        ROW(an_address_of_the_pool_that_nobody_was_given_is_refused),
        ROW(a_name_is_refused_on_a_port_that_no_entry_lists),
        ROW(a_server_that_speaks_first_is_heard),
        ROW(a_name_with_a_private_address_is_refused_with_it),
        ROW(a_name_without_addresses_is_told_as_a_failed_dial),
        ROW(accepted_sockets_tell_where_the_program_connected_to),
        ROW(without_descriptors_the_listener_is_silent_and_goes_on_later),
        ROW(a_policy_that_forbids_an_open_flow_cuts_it),
        ROW(a_flow_to_a_listed_address_is_cut_when_the_range_goes),
        ROW(a_flow_of_a_name_is_cut_when_its_address_may_not_be_dialled),
        ROW(a_client_that_says_nothing_is_closed_and_not_told),
        ROW(a_hello_that_does_not_come_to_its_end_is_refused),
        ROW(a_client_that_resets_ends_the_flow),
        ROW(a_flow_takes_little_memory),
#undef ROW
    };

    return cmocka_run_group_tests(tests, enter_network, NULL);
}
