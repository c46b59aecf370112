package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"golang.org/x/sys/unix"
)

const outputLimit = 256

type benchRequest struct {
	Do          string           `json:"do"`
	Name        string           `json:"name"`
	Runs        int              `json:"runs"`
	Environment benchEnvironment `json:"environment"`
	Case        benchCase        `json:"case"`
}

type benchEnvironment struct {
	Fork      string  `json:"fork"`
	ChainID   uint64  `json:"chain_id"`
	Number    *uint64 `json:"number"`
	Timestamp *uint64 `json:"timestamp"`
	GasLimit  *uint64 `json:"gas_limit"`
	BaseFee   word    `json:"base_fee"`
}

type benchCase struct {
	Pre      map[common.Address]account `json:"pre"`
	Caller   common.Address             `json:"caller"`
	To       common.Address             `json:"to"`
	Calldata hexutil.Bytes              `json:"calldata"`
	Gas      word                       `json:"gas"`
}

// program is a message call that starts from the same state each time.
type program struct {
	evm     *vm.EVM
	statedb *state.StateDB
	rules   params.Rules
	active  []common.Address
	item    benchCase
}

func (p *program) run() ([]byte, uint64, error) {
	p.statedb.Prepare(p.rules, p.item.Caller, common.Address{}, &p.item.To, p.active, nil)
	snapshot := p.statedb.Snapshot()
	gas := vm.NewGasBudget(p.item.Gas.Uint64(), 0)
	output, left, err := p.evm.Call(p.item.Caller, p.item.To, p.item.Calldata, gas, new(uint256.Int))
	p.statedb.RevertToSnapshot(snapshot)
	return output, left.Used(gas), err
}

// processSeconds returns the processor time of all threads: it includes the garbage collector's.
func processSeconds() float64 {
	var spent unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &spent); err != nil {
		panic(err)
	}
	return float64(spent.Nano()) / 1e9
}

type bench struct{ programs map[string]*program }

func newBench() *bench { return &bench{map[string]*program{}} }

func orElse(value *uint64, other uint64) uint64 {
	if value == nil {
		return other
	}
	return *value
}

func prepared(request *benchRequest) (*program, error) {
	environment := &request.Environment
	if environment.Fork == "" {
		environment.Fork = "cancun"
	}
	config, err := configuration(environment.Fork)
	if err != nil {
		return nil, err
	}
	if environment.ChainID > 1 {
		return nil, fmt.Errorf("chain id %d: this peer runs programs of chain 1", environment.ChainID)
	}
	statedb, err := stateOf(request.Case.Pre)
	if err != nil {
		return nil, err
	}
	context := contextOf(config, &block{
		Number: orElse(environment.Number, 1), Timestamp: orElse(environment.Timestamp, 1),
		GasLimit: orElse(environment.GasLimit, 30_000_000), BaseFee: environment.BaseFee,
	})
	evm := vm.NewEVM(context, statedb, config, vm.Config{})
	evm.SetTxContext(vm.TxContext{Origin: request.Case.Caller, GasPrice: new(uint256.Int)})
	rules := evm.GetRules()
	return &program{evm, statedb, rules, vm.ActivePrecompiles(rules), request.Case}, nil
}

func (b *bench) answer(line []byte) (any, error) {
	var request benchRequest
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	switch request.Do {
	case "hello":
		return map[string]string{"version": version()}, nil
	case "prepare":
		program, err := prepared(&request)
		if err != nil {
			return nil, err
		}
		b.programs[request.Name] = program
		start := processSeconds()
		output, used, err := program.run()
		seconds := processSeconds() - start
		if err != nil && !errors.Is(err, vm.ErrExecutionReverted) {
			output = nil
		}
		shown := "0x" + common.Bytes2Hex(output[:min(len(output), outputLimit)])
		outcome := map[string]any{"gas_used": used, "output": shown, "success": err == nil}
		return map[string]any{"outcome": outcome, "seconds": seconds}, nil
	case "time":
		program := b.programs[request.Name]
		if program == nil {
			return nil, fmt.Errorf("no program %q", request.Name)
		}
		start := processSeconds()
		for range request.Runs {
			program.run()
		}
		return map[string]float64{"seconds": processSeconds() - start}, nil
	case "forget":
		delete(b.programs, request.Name)
		return map[string]string{}, nil
	}
	return nil, errors.New("unknown request " + strings.TrimSpace(request.Do))
}
